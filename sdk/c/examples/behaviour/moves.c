/* Moving, being refused, and failing. */
#include "behaviour.h"

#include "vendor/yyjson.h"

#include <stdio.h>
#include <stdlib.h>

static il_end change(il_entity *entity, const il_json *value) {
    il_json *data = il_new_object(), *outputs = il_new_object();
    il_put(data, "what", "change");
    il_put(data, "saw", value);
    il_put(data, "count", 1);
    il_put(outputs, "result", value); /* stands in data as well: copied */
    return il_transition(entity, "idle", .data = data, .outputs = outputs,
        .conditions = IL_CONDITIONS({"Ready", IL_TRUE, "AllThere", "everything is there"}, {.type = "Stale", .status = IL_FALSE},
            {"Reachable", IL_UNKNOWN, "NotAsked", "nobody has asked"}));
}

static il_end mutations(il_entity *entity, const il_json *value) {
    (void)value;
    il_json *data = il_parse("{\"what\": \"mutations\", \"saw\": "
                             "{\"n\": 1, \"gone\": true, \"list\": [1, 2], \"high\": 5, \"low\": 5}}", NULL);
    return il_transition(entity, "idle", .data = data,
        .set = IL_MUTATIONS(il_set("data.saw.made.on.the.way", il_lit(true)), il_set("data.saw.null", il_lit(il_null())),
            il_set("data.saw.event", il_from("event.value")), il_increment("data.saw.n", il_lit(41)),
            il_increment("data.saw.new", il_lit(-1)), il_remove("data.saw.gone"), il_append("data.saw.list", il_lit(3), 2),
            il_max("data.saw.high", il_lit(9)), il_min("data.saw.low", il_lit(9))));
}

static il_end go_look(il_entity *entity, const il_json *value) {
    (void)value;
    return il_transition(entity, "looking");
}

static uint64_t done_of(il_entity *entity) {
    const il_json *saw = il_object(il_data(entity), "saw");
    return il_get(saw, "done") == NULL ? 0 : il_uint(saw, "done");
}

static il_end walk(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    for (uint64_t done = done_of(entity); done != 3; done = done_of(entity)) {
        const char *message = il_format("%llu of 3", (unsigned long long)done + 1);
        IL_TRY(why, il_save(entity, &why, .set = IL_MUTATIONS(il_increment("data.saw.done", il_lit(1))),
                        .conditions = IL_CONDITIONS({"Walked", IL_FALSE, "Walking", message})));
    }
    il_json *outputs = il_new_object();
    il_put(outputs, "result", 3);
    return il_transition(entity, "idle", .outputs = outputs, .conditions = IL_CONDITIONS({"Walked", IL_TRUE, "", ""}));
}

static il_end reload(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    uint64_t before = il_version(entity);
    il_end end = answer(entity, il_of("no conflict"));
    const il_rejection *no = il_refused(end);
    if (no == NULL || no->kind != IL_CONFLICT) {
        return end;
    }
    IL_TRY(why, il_reload(entity, &why));
    il_json *saw = il_new_object();
    il_put(saw, "kind", il_kind_name(no->kind));
    il_put(saw, "grown", (bool)(il_version(entity) > before));
    return answer(entity, saw);
}

static il_end refused(il_entity *entity, il_end end) {
    return answer_refused(entity, il_refused(end) == NULL, il_refused(end));
}

static il_end not_allowed(il_entity *entity, const il_json *value) {
    (void)value;
    return refused(entity, il_transition(entity, "nowhere"));
}

static il_end guard(il_entity *entity, const il_json *value) {
    (void)value;
    il_end end = il_transition(entity, "counted", .set = IL_MUTATIONS(il_set("data.count", il_lit(1))));
    const il_rejection *no = il_refused(end);
    if (no == NULL) {
        return answer_refused(entity, true, NULL);
    }
    return il_transition(entity, "counted",
        .set = IL_MUTATIONS(il_set("data.count", il_lit(2)), il_set("data.saw", il_lit(refusal(no)))));
}

static il_end schema(il_entity *entity, const il_json *value) {
    (void)value;
    return refused(entity, il_transition(entity, "idle", .set = IL_MUTATIONS(il_set("data.count", il_lit("many")))));
}

static il_end denied(il_entity *entity, const il_json *value) {
    (void)value;
    return refused(entity, il_transition(entity, "idle", .set = IL_MUTATIONS(il_set("desired.size", il_lit(1)))));
}

/* No type of C has it: yyjson takes it as text. */
static il_end number(il_entity *entity, const il_json *value) {
    (void)value;
    il_end end = answer(entity, yyjson_mut_raw(il_document(), "18446744073709551617"));
    const il_rejection *no = il_refused(end);
    if (no == NULL) {
        return answer_refused(entity, true, NULL);
    }
    il_json *saw = il_new_object();
    il_put(saw, "kind", il_kind_name(no->kind));
    return answer(entity, saw);
}

static il_end uncaught(il_entity *entity, const il_json *value) {
    (void)value;
    return il_transition(entity, "nowhere");
}

static il_end retry(il_entity *entity, const il_json *value) {
    (void)value;
    if (il_attempt(entity) == 1) {
        return il_fail_retry_after(30000, "not-yet", "not yet there");
    }
    il_json *saw = il_new_object();
    il_put(saw, "attempt", il_attempt(entity));
    return answer(entity, saw);
}

static il_end give_up(il_entity *entity, const il_json *value) {
    (void)entity, (void)value;
    return il_fail_permanent("no-use", "it is of no use");
}

static il_end exception(il_entity *entity, const il_json *value) {
    (void)entity, (void)value;
    fprintf(stderr, "this step is broken\n");
    abort();
}

static il_end no_transition(il_entity *entity, const il_json *value) {
    (void)entity, (void)value;
    return (il_end){NULL};
}

const behaviour_t moves[] = {{"change", change}, {"mutations", mutations}, {"look", go_look}, {"walk", walk},
    {"reload", reload}, {"not-allowed", not_allowed}, {"guard", guard}, {"schema", schema}, {"denied", denied},
    {"number", number}, {"uncaught", uncaught}, {"retry", retry}, {"give-up", give_up}, {"exception", exception},
    {"no-transition", no_transition}, {NULL, NULL}};
