/* Leases, fencing tokens, timers, effects and the log. */
#include "behaviour.h"

#include <stdio.h>

static il_end lease(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_json *saw = il_new_object();
    il_lease *desk = il_acquire(entity, &why, "desk");
    IL_TRY(why, desk != NULL);
    uint64_t token = il_lease_token(desk);
    il_put(saw, "name", il_lease_name(desk));
    il_put(saw, "holds", il_lease_still_holds(desk));
    IL_TRY(why, il_lease_extend_for(desk, &why, 300000));
    il_put(saw, "extended", (bool)(il_lease_left_ms(desk) > 60000 && il_lease_token(desk) == token));
    IL_TRY(why, il_lease_release(desk, &why));
    il_lease *again = il_acquire_for(entity, &why, "desk", 30000);
    IL_TRY(why, again != NULL);
    il_put(saw, "short", (bool)(il_lease_left_ms(again) <= 30000));
    il_put(saw, "grown", (bool)(il_lease_token(again) > token));
    return answer(entity, saw);
}

static il_end lease_refused(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    return answer_refused(entity, il_acquire(entity, &why, "desk") != NULL, &why);
}

/* Fails once, so that a second attempt can compare. */
static il_end fencing(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    uint64_t token = il_token(entity);
    if (il_attempt(entity) == 1) {
        IL_TRY(why, il_save(entity, &why, .set = IL_MUTATIONS(il_set("data.saw.token", il_lit(token)))));
        return il_fail_retry("again", "for another token");
    }
    il_json *saw = il_new_object();
    uint64_t before = il_uint(il_object(il_data(entity), "saw"), "token");
    il_put(saw, "grown", (bool)(token > before));
    il_put(saw, "holds", il_still_holds(entity));
    return answer(entity, saw);
}

static il_end timer_after(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    IL_TRY(why, il_timer_after(entity, &why, "bell", 60000));
    return il_transition(entity, "waiting");
}

static il_end timer_at(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    IL_TRY(why, il_timer_at(entity, &why, "gong", (int64_t)il_event_of(entity)->at_ms + 60000));
    return il_transition(entity, "waiting");
}

static il_end timer_cancel(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    IL_TRY(why, il_timer_after(entity, &why, "bell", 10000));
    IL_TRY(why, il_timer_after(entity, &why, "gong", 20000));
    IL_TRY(why, il_timer_cancel(entity, &why, "bell"));
    return il_transition(entity, "waiting");
}

static il_end effect(il_entity *entity, const il_json *value) {
    il_rejection why;
    IL_TRY(why, il_request(entity, &why, "api", .params = IL_PAIRS({"item", il_text(value, "item")}),
                    .headers = IL_PAIRS({"X-Note", "from a step"}), .body = value));
    return il_transition(entity, "waiting");
}

static il_end effect_denied(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    bool taken = il_request(entity, &why, "api", .params = IL_PAIRS({"item", "1"}),
        .headers = IL_PAIRS({"Authorization", "Bearer x"}));
    return answer_refused(entity, taken, &why);
}

/* C's own means have two levels: standard output is info, standard error is error. */
static il_end log_lines(il_entity *entity, const il_json *value) {
    (void)value;
    il_log(IL_TRACE, "this is %s", "trace");
    il_log(IL_DEBUG, "this is debug");
    printf("this is info\n");
    il_log(IL_WARN, "this is warn");
    fprintf(stderr, "this is error\n");
    il_log_with(IL_INFO, IL_PAIRS({"n", "9007199254740993"}, {"text", "Grüße"}), "with fields");
    return answer(entity, il_of("logged"));
}

const behaviour_t powers[] = {{"lease", lease}, {"lease-refused", lease_refused}, {"fencing", fencing},
    {"timer-after", timer_after}, {"timer-at", timer_at}, {"timer-cancel", timer_cancel}, {"effect", effect},
    {"effect-denied", effect_denied}, {"log", log_lines}, {NULL, NULL}};
