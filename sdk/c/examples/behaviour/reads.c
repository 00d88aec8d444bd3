/* What a step reads. */
#include "behaviour.h"

#include <string.h>

static il_end read(il_entity *entity, const il_json *value) {
    (void)value;
    const il_event *event = il_event_of(entity);
    const char *begin = il_format("%s@", il_id(entity));
    il_json *cause = il_new_object(), *saw = il_new_object();
    il_put(cause, "id", event->id);
    il_put(cause, "kind", il_event_kind_name(event->kind));
    il_put(cause, "name", event->name);
    il_put(cause, "payload", event->payload);
    il_put(cause, "at", (bool)(event->at_ms > 0));
    il_put(saw, "id", il_id(entity));
    il_put(saw, "key", il_key(entity));
    il_put(saw, "execution", (bool)(strncmp(il_execution(entity), begin, strlen(begin)) == 0));
    il_put(saw, "attempt", il_attempt(entity));
    il_put(saw, "state", il_state(entity));
    il_put(saw, "version", il_version(entity));
    il_put(saw, "desired", il_desired(entity));
    il_put(saw, "data", il_data(entity));
    il_put(saw, "outputs", il_outputs(entity));
    il_put(saw, "cancel", il_cancel_requested(entity));
    il_put(saw, "time", (bool)(il_deadline_ms(entity) > 0));
    il_put(saw, "event", cause);
    return answer(entity, saw);
}

static il_end read_nothing(il_entity *entity, const il_json *value) {
    (void)value;
    il_json *saw = il_new_object();
    il_put(saw, "desired", (bool)(il_desired(entity) == NULL));
    il_put(saw, "outputs", (bool)(il_outputs(entity) == NULL));
    return answer(entity, saw);
}

static const char *word(const il_json *object, const char *key) {
    switch (il_type_of(il_get(object, key))) {
    case IL_NONE: return "missing";
    case IL_NULL: return "null";
    default: return "there";
    }
}

/* Null is a value; a field that is not there is none. */
static il_end nulls(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_json *list = il_new_array(), *put = il_new_object(), *saw = il_new_object();
    il_push(list, il_null());
    il_put(put, "null", il_null());
    il_put(put, "list", list);
    IL_TRY(why, il_save(entity, &why, .set = IL_MUTATIONS(il_set("data.saw", il_lit(put)))));
    const il_json *back = il_object(il_data(entity), "saw");
    il_put(saw, "null", word(back, "null"));
    il_put(saw, "other", word(back, "other"));
    il_put(saw, "list", word(back, "list"));
    return answer(entity, saw);
}

const behaviour_t reads[] = {
    {"read", read}, {"read-nothing", read_nothing}, {"echo", answer}, {"nulls", nulls}, {NULL, NULL}};
