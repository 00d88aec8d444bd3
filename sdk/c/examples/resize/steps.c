/* Resize a pool: plan, wait for the provider, verify. The host keeps others out meanwhile.
 *
 * The same steps as guests/resource, whose machine and scenarios are played on them. */
#include "interlock.h"
#include "placement.h"

#include <string.h>

static const char *image_of(il_entity *pool) {
    il_json *desired = il_desired(pool); /* none before the first apply */
    return desired == NULL ? "" : il_text(desired, "image");
}

static il_end plan(il_entity *pool) {
    static char names[HOSTS][NAME_SIZE];
    il_json *data = il_data(pool);
    const char *image = image_of(pool);
    size_t target = (size_t)il_uint(data, "target");
    if (!il_shape_ok()) {
        return il_fail_shape(); /* before a second of searching */
    }
    if (!placement_search(target, image, names)) {
        return il_fail_permanent("no-room", "no room for %zu of \"%s\"", target, image);
    }
    il_json *nodes = il_new_array();
    const char *all = "";
    for (size_t i = 0; i < target; i++) {
        il_push(nodes, names[i]);
        all = il_format("%s%s%s", all, i == 0 ? "" : " ", names[i]);
    }
    il_put(data, "nodes", nodes);
    il_log_with(IL_INFO, IL_PAIRS({"nodes", all}), "found a place for %zu", target);
    return il_transition(pool, "provisioning", .data = data);
}

/* Stands in for whoever rents out nodes: the name of the image decides what happens. */
typedef enum { UP, STARTING, WITHDRAWN } health_t;

static health_t health(const char *image, uint32_t look) {
    if (strstr(image, "withdrawn") != NULL) {
        return WITHDRAWN;
    }
    bool slow = strstr(image, "slow-start") != NULL && look < 3;
    return slow || strstr(image, "never-starts") != NULL ? STARTING : UP;
}

static il_end verify(il_entity *pool) {
    il_json *data = il_data(pool);
    uint64_t target = il_uint(data, "target");
    if (il_length(il_array(data, "nodes")) != target) {
        return il_fail_permanent("plan-broken", "nodes are missing from the plan");
    }
    switch (health(image_of(pool), il_attempt(pool))) {
    case UP: break;
    case STARTING: return il_fail_retry("starting", "the nodes are still starting");
    case WITHDRAWN: return il_fail_permanent("withdrawn", "the provider took the nodes back");
    }
    il_put(data, "size", target);
    il_json *outputs = il_new_object();
    il_put(outputs, "size", target);
    il_put(outputs, "endpoint", il_format("%s.pool.example", il_key(pool)));
    return il_transition(pool, "ready", .data = data, .outputs = outputs);
}

IL_STEPS({"plan", plan}, {"verify", verify});
