/* A step from the call to its end: what it is run with, how it fails, what it says. Knows no rule: the host judges. */
#include "internal.h"

#define SAME(own, generated) _Static_assert((int)(own) == (int)(generated), "the contract's order")
SAME(IL_INVALID, INTERLOCK_STEP_TYPES_REJECTION_KIND_INVALID);
SAME(IL_FENCED, INTERLOCK_STEP_TYPES_REJECTION_KIND_FENCED);
SAME(IL_UNAVAILABLE, INTERLOCK_STEP_TYPES_REJECTION_KIND_UNAVAILABLE);
SAME(IL_SIGNAL, INTERLOCK_STEP_TYPES_EVENT_KIND_SIGNAL);
SAME(IL_CHILD, INTERLOCK_STEP_TYPES_EVENT_KIND_CHILD);
SAME(IL_OTHER, INTERLOCK_STEP_TYPES_EVENT_KIND_OTHER);
SAME(IL_UNKNOWN, INTERLOCK_STEP_TYPES_CONDITION_STATUS_UNKNOWN);
SAME(IL_ERROR, INTERLOCK_STEP_LOG_LEVEL_ERROR);

/* --- Refusals --------------------------------------------------------------------------------------------------- */

const char *il_kind_name(il_kind kind) {
    static const char *const names[] = {"invalid", "not-found", "denied", "late", "fenced", "busy", "not-allowed",
        "conflict", "guard", "limit", "unavailable"};
    return names[kind];
}

const char *il_event_kind_name(il_event_kind kind) {
    static const char *const names[] = {"signal", "timer", "deadline", "transition", "desired-changed", "failure",
        "created", "child", "join", "effect", "cancel", "operator", "other"};
    return names[kind];
}

bool il__refuse(il_rejection *why, const rejection_t *rejection) {
    if (why != NULL) {
        *why = (il_rejection){
            .kind = rejection->kind,
            .code = il__text(rejection->code),
            .subject = il__text(rejection->subject),
            .expected = il__text(rejection->expected),
            .got = il__text(rejection->got),
            .retryable = rejection->retryable,
            .has_retry_after = rejection->retry_after_ms.is_some,
            .retry_after_ms = rejection->retry_after_ms.is_some ? rejection->retry_after_ms.val : 0,
            .detail = rejection->detail.is_some ? il__read(rejection->detail.val, "detail") : NULL,
        };
    }
    return false;
}

bool il__may_ask(il_rejection *why) {
    const il_rejection *problem = il__shape();
    if (problem != NULL && why != NULL) {
        *why = *problem;
    }
    return problem == NULL;
}

static il_end failed(struct il_failed failure) {
    struct il_failed *kept = il__new(sizeof(failure));
    *kept = failure;
    return (il_end){kept};
}

#define FAILURE_OF(...)                                                                                              \
    va_list arguments;                                                                                               \
    va_start(arguments, format);                                                                                     \
    char *reason = il__format(format, arguments);                                                                    \
    va_end(arguments);                                                                                               \
    il__mend(reason, strlen(reason));                                                                                \
    return failed((struct il_failed){.code = il_format("%s", code), .reason = reason, __VA_ARGS__})

il_end il_fail_permanent(const char *code, const char *format, ...) {
    FAILURE_OF(.permanent = true);
}

il_end il_fail_retry(const char *code, const char *format, ...) {
    FAILURE_OF(.permanent = false);
}

il_end il_fail_retry_after(uint64_t ms, const char *code, const char *format, ...) {
    FAILURE_OF(.has_after = true, .after_ms = ms);
}

il_end il_fail_rejection(const il_rejection *why) {
    il_rejection *kept = il__new(sizeof(*why));
    *kept = *why;
    return failed((struct il_failed){
        .permanent = !why->retryable,
        .code = why->code,
        .reason = il_format("%s: %s: expected %s, got %s", why->code, why->subject, why->expected, why->got),
        .has_after = why->has_retry_after,
        .after_ms = why->retry_after_ms,
        .rejection = kept,
    });
}

il_end il_fail_shape(void) {
    const il_rejection *problem = il__shape();
    return problem != NULL ? il_fail_rejection(problem)
                           : il_fail_permanent("data-shape", "the step found a document of another shape than it expects");
}

const il_rejection *il_refused(il_end end) {
    return end.failed == NULL ? NULL : end.failed->rejection;
}

/* --- The log ---------------------------------------------------------------------------------------------------- */

static void write(il_level level, il_pairs fields, char *message) {
    text_t lent = il__lend(message);
    il__mend(message, lent.len);
    step_with_everything_list_tuple2_string_string_t pairs = il__lend_pairs(fields);
    interlock_step_log_write(level, &lent, &pairs);
}

void il_log(il_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write(level, (il_pairs){NULL, 0}, il__format(format, arguments));
    va_end(arguments);
}

void il_log_with(il_level level, il_pairs fields, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write(level, fields, il__format(format, arguments));
    va_end(arguments);
}

/* --- The step --------------------------------------------------------------------------------------------------- */

static il_end unknown(const char *name) {
    const char *known = "";
    for (const il_step *step = il_steps; step->name != NULL; step++) {
        known = il_format("%s%s%s", known, known[0] == 0 ? "" : ", ", step->name);
    }
    return il_fail_permanent("unknown-step", "this component has no step \"%s\"; it has %s", name, known);
}

static il_end run(const char *name, il_entity *entity) {
    for (const il_step *step = il_steps; step->name != NULL; step++) {
        if (strcmp(step->name, name) == 0) {
            il_end end = step->run(entity);
            /* What was read wrongly comes before what the step made of it. */
            return il__shape() != NULL && !entity->over ? il_fail_shape() : end;
        }
    }
    return unknown(name);
}

/* The bindings ask for the object that carries the component type. A builder that writes the type itself has no such
 * object; where there is one, it is taken instead of this. */
__attribute__((weak)) void __component_type_object_force_link_step_with_everything(void) {
}

bool exports_step_with_everything_run(text_t *step_name, step_with_everything_own_entity_t own,
    step_with_everything_event_t *event, step_with_everything_failure_t *failure) {
    il_entity entity = {
        .handle = {own.__handle},
        .event = {
            .id = il__text(event->id),
            .kind = event->kind,
            .name = il__text(event->name),
            /* read before there is any mark: no il_release takes it */
            .payload = event->payload.is_some ? il__read(event->payload.val, "payload") : NULL,
            .at_ms = event->at_ms,
        },
    };
    il_end end = run(il__text(*step_name), &entity);
    il__flush();
    if (end.failed == NULL) {
        return true;
    }
    const struct il_failed *why = end.failed;
    *failure = (step_with_everything_failure_t){
        .permanent = why->permanent,
        .code = il__lend(why->code),
        .reason = il__lend(why->reason),
        .retry_after_ms = {why->has_after, why->after_ms},
    };
    return false;
}
