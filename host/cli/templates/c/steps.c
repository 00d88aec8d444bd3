/* One backup at a time: copy, let it settle, verify. */
#include "interlock.h"

#include <string.h>

static il_end copy(il_entity *entity) {
    const char *label = il_text(il_data(entity), "label");
    il_log(IL_INFO, "copying %s", label);
    if (strcmp(label, "full") == 0) {
        return il_fail_permanent("disk-full", "there is no room left");
    }
    return il_transition(entity, "settling");
}

static il_end verify(il_entity *entity) {
    il_json *data = il_data(entity);
    il_put(data, "runs", il_int(data, "runs") + 1);
    il_json *outputs = il_new_object();
    il_put(outputs, "location", il_format("backups/%s/%s", il_key(entity), il_text(data, "label")));
    return il_transition(entity, "idle", .data = data, .outputs = outputs);
}

IL_STEPS({"copy", copy}, {"verify", verify});
