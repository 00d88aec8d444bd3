/* What a step can do, one behaviour each: guests/behaviour/README.md says what they are, and has the scenarios. */
#include "behaviour.h"

#include <string.h>

il_end answer(il_entity *entity, const il_json *saw) {
    return il_transition(entity, "idle", .set = IL_MUTATIONS(il_set("data.saw", il_lit(saw))));
}

il_json *refusal(const il_rejection *why) {
    il_json *saw = il_new_object();
    il_put(saw, "kind", il_kind_name(why->kind));
    il_put(saw, "code", why->code);
    il_put(saw, "subject", why->subject);
    il_put(saw, "expected", why->expected);
    il_put(saw, "got", why->got);
    il_put(saw, "retryable", why->retryable);
    return saw;
}

il_end answer_refusal(il_entity *entity, const il_rejection *why) {
    return answer(entity, refusal(why));
}

il_end answer_refused(il_entity *entity, bool accepted, const il_rejection *why) {
    return accepted ? il_fail_permanent("not-refused", "the host took what it should refuse")
                    : answer_refusal(entity, why);
}

static il_end behave(il_entity *entity) {
    const behaviour_t *const all[] = {reads, moves, powers, rows, hostile};
    const il_json *asked = il_event_of(entity)->payload;
    const char *what = il_text(asked, "what");
    const il_json *value = il_get(asked, "value");
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        for (const behaviour_t *each = all[i]; each->what != NULL; each++) {
            if (strcmp(each->what, what) == 0) {
                return each->does(entity, value == NULL ? il_null() : value);
            }
        }
    }
    return il_fail_permanent("unknown-behaviour", "there is no behaviour %s", what);
}

static il_json *text_or_null(const char *text) {
    return text == NULL ? il_null() : il_of(text);
}

static il_end look(il_entity *entity) {
    const il_event *event = il_event_of(entity);
    il_json *saw = il_new_object();
    il_effect effect;
    il_put(saw, "kind", il_event_kind_name(event->kind));
    il_put(saw, "name", event->name);
    if (il_effect_of(entity, &effect)) {
        il_put(saw, "target", effect.target);
        il_put(saw, "status", effect.status == 0 ? il_null() : il_of(effect.status));
        il_put(saw, "body", effect.body);
        il_put(saw, "code", text_or_null(effect.code));
    } else {
        il_put(saw, "payload", (bool)(event->payload != NULL));
    }
    return answer(entity, saw);
}

IL_STEPS({"behave", behave}, {"look", look});
