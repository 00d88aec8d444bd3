/* The entity, and what is asked of the host for it. Knows no rule: the host judges. */
#include "internal.h"

/* --- The entity ------------------------------------------------------------------------------------------------- */

#define TEXT_OF(function)                                                                                            \
    text_t text;                                                                                                     \
    interlock_step_transition_method_entity_##function(entity->handle, &text);                                       \
    return il__text(text)

const char *il_id(il_entity *entity) {
    TEXT_OF(id);
}

const char *il_key(il_entity *entity) {
    TEXT_OF(key);
}

const char *il_execution(il_entity *entity) {
    TEXT_OF(execution);
}

const char *il_state(il_entity *entity) {
    TEXT_OF(state);
}

uint32_t il_attempt(il_entity *entity) {
    return interlock_step_transition_method_entity_attempt(entity->handle);
}

uint64_t il_version(il_entity *entity) {
    return interlock_step_transition_method_entity_version(entity->handle);
}

const il_event *il_event_of(il_entity *entity) {
    return &entity->event;
}

#define DOCUMENT_OF(function)                                                                                        \
    text_t text;                                                                                                     \
    bool there = interlock_step_transition_method_entity_##function(entity->handle, &text);                          \
    return there ? il__read(text, #function) : NULL

il_json *il_desired(il_entity *entity) {
    DOCUMENT_OF(desired);
}

il_json *il_data(il_entity *entity) {
    DOCUMENT_OF(data);
}

il_json *il_outputs(il_entity *entity) {
    DOCUMENT_OF(outputs);
}

bool il_cancel_requested(il_entity *entity) {
    return interlock_step_transition_method_entity_cancel_requested(entity->handle);
}

uint64_t il_deadline_ms(il_entity *entity) {
    return interlock_step_transition_method_entity_deadline_ms(entity->handle);
}

/* --- Values, mutations, conditions ------------------------------------------------------------------------------ */

bool il__lend_value(const il_value *value, const char *subject, value_t *lent, il_rejection *why) {
    if (value->from != NULL) {
        lent->tag = INTERLOCK_STEP_TYPES_VALUE_FROM;
        lent->val.from = il__lend(value->from);
        return true;
    }
    lent->tag = INTERLOCK_STEP_TYPES_VALUE_JSON;
    return il__write(value->json, subject, &lent->val.json, why);
}

il_mutation il_set(const char *field, il_value value) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_SET, field, value, 0};
}

il_mutation il_increment(const char *field, il_value value) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_INCREMENT, field, value, 0};
}

il_mutation il_remove(const char *field) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_REMOVE, field, {NULL, NULL}, 0};
}

il_mutation il_append(const char *field, il_value value, uint32_t limit) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_APPEND, field, value, limit};
}

il_mutation il_max(const char *field, il_value value) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_MAX, field, value, 0};
}

il_mutation il_min(const char *field, il_value value) {
    return (il_mutation){INTERLOCK_STEP_TYPES_MUTATION_MIN, field, value, 0};
}

static bool lend_mutation(const il_mutation *own, interlock_step_types_mutation_t *lent, il_rejection *why) {
    text_t field = il__lend(own->field);
    value_t value;
    lent->tag = own->what;
    if (own->what == INTERLOCK_STEP_TYPES_MUTATION_REMOVE) {
        lent->val.remove = field;
        return true;
    }
    if (!il__lend_value(&own->value, own->field, &value, why)) {
        return false;
    }
    if (own->what == INTERLOCK_STEP_TYPES_MUTATION_APPEND) {
        lent->val.append = (interlock_step_types_appending_t){field, value, own->limit};
    } else { /* the others hold the same: a field and a value */
        lent->val.set = (interlock_step_types_assignment_t){field, value};
    }
    return true;
}

bool il__lend_mutations(il_mutations list, interlock_step_rows_list_mutation_t *lent, il_rejection *why) {
    lent->ptr = il__new(list.count * sizeof(*lent->ptr));
    lent->len = list.count;
    for (size_t i = 0; i < list.count; i++) {
        if (!lend_mutation(&list.at[i], &lent->ptr[i], why)) {
            return false;
        }
    }
    return true;
}

bool il__lend_json(const il_json *value, const char *subject, option_json_t *lent, il_rejection *why) {
    lent->is_some = value != NULL;
    return value == NULL || il__write(value, subject, &lent->val, why);
}

static interlock_step_transition_list_condition_t lend_conditions(il_conditions list) {
    interlock_step_transition_list_condition_t lent = {il__new(list.count * sizeof(*lent.ptr)), list.count};
    for (size_t i = 0; i < list.count; i++) {
        const il_condition *own = &list.at[i];
        lent.ptr[i] = (interlock_step_transition_condition_t){
            il__lend(own->type), own->status, il__lend(own->reason), il__lend(own->message)};
    }
    return lent;
}

step_with_everything_list_tuple2_string_string_t il__lend_pairs(il_pairs list) {
    step_with_everything_list_tuple2_string_string_t lent = {il__new(list.count * sizeof(*lent.ptr)), list.count};
    for (size_t i = 0; i < list.count; i++) {
        lent.ptr[i] = (step_with_everything_tuple2_string_string_t){
            il__lend(list.at[i].name), il__lend(list.at[i].value)};
    }
    return lent;
}

/* --- Asking ----------------------------------------------------------------------------------------------------- */

/* A change and a checkpoint say the same, but for where to go. */
static bool lend_change(const il_change *own, interlock_step_transition_change_t *lent, il_rejection *why) {
    interlock_step_rows_list_mutation_t set;
    option_json_t data, outputs;
    if (!il__may_ask(why) || !il__lend_json(own->data, "data", &data, why) ||
        !il__lend_json(own->outputs, "outputs", &outputs, why) || !il__lend_mutations(own->set, &set, why)) {
        return false;
    }
    *lent = (interlock_step_transition_change_t){
        .to = il__lend(own->to),
        .data = {data.is_some, data.val},
        .outputs = {outputs.is_some, outputs.val},
        .set = {set.ptr, set.len},
        .conditions = lend_conditions(own->conditions),
    };
    return true;
}

il_end il_transition_to(il_entity *entity, il_change change) {
    il_rejection why;
    rejection_t rejection;
    interlock_step_transition_change_t lent;
    if (!lend_change(&change, &lent, &why)) {
        return il_fail_rejection(&why);
    }
    if (!interlock_step_transition_method_entity_transition(entity->handle, &lent, &rejection)) {
        il__refuse(&why, &rejection);
        return il_fail_rejection(&why);
    }
    entity->over = true;
    return (il_end){NULL};
}

bool il_save_as(il_entity *entity, il_rejection *why, il_change checkpoint) {
    rejection_t rejection;
    interlock_step_transition_change_t lent;
    if (!lend_change(&checkpoint, &lent, why)) {
        return false;
    }
    interlock_step_transition_checkpoint_t stay = {lent.data, lent.outputs, lent.set, lent.conditions};
    return interlock_step_transition_method_entity_save(entity->handle, &stay, &rejection) ||
           il__refuse(why, &rejection);
}

bool il_reload(il_entity *entity, il_rejection *why) {
    rejection_t rejection;
    return interlock_step_transition_method_entity_reload(entity->handle, &rejection) || il__refuse(why, &rejection);
}

bool il_timer_after(il_entity *entity, il_rejection *why, const char *name, uint64_t ms) {
    rejection_t rejection;
    text_t lent = il__lend(name);
    return il__may_ask(why) &&
           (interlock_step_timers_after(entity->handle, &lent, ms, &rejection) || il__refuse(why, &rejection));
}

bool il_timer_at(il_entity *entity, il_rejection *why, const char *name, int64_t unix_ms) {
    rejection_t rejection;
    text_t lent = il__lend(name);
    return il__may_ask(why) &&
           (interlock_step_timers_at(entity->handle, &lent, unix_ms, &rejection) || il__refuse(why, &rejection));
}

bool il_timer_cancel(il_entity *entity, il_rejection *why, const char *name) {
    rejection_t rejection;
    text_t lent = il__lend(name);
    return il__may_ask(why) &&
           (interlock_step_timers_cancel(entity->handle, &lent, &rejection) || il__refuse(why, &rejection));
}

bool il_request_to(il_entity *entity, il_rejection *why, il_outbound outbound) {
    rejection_t rejection;
    option_json_t body;
    if (!il__may_ask(why) || !il__lend_json(outbound.body, "body", &body, why)) {
        return false;
    }
    interlock_step_effects_outbound_t lent = {
        .target = il__lend(outbound.target),
        .params = il__lend_pairs(outbound.params),
        .headers = il__lend_pairs(outbound.headers),
        .body = {body.is_some, body.val},
    };
    return interlock_step_effects_request(entity->handle, &lent, &rejection) || il__refuse(why, &rejection);
}

static const char *text_or_null(const il_json *object, const char *key) {
    il_type type = il_type_of(il_get(object, key));
    return type == IL_NONE || type == IL_NULL ? NULL : il_text(object, key);
}

bool il_effect_of(il_entity *entity, il_effect *effect) {
    const il_event *event = il_event_of(entity);
    if (event->kind != IL_EFFECT || event->payload == NULL) {
        return false;
    }
    const il_json *payload = event->payload;
    il_json *body = il_get(payload, "body");
    *effect = (il_effect){
        .effect = il_text(payload, "effect"),
        .number = il_uint(payload, "number"),
        .target = il_text(payload, "target"),
        .execution = il_text(payload, "execution"),
        .status = il_type_of(il_get(payload, "status")) == IL_INTEGER ? il_uint(payload, "status") : 0,
        .body = il_type_of(body) == IL_NULL ? NULL : body,
        .truncated = il_get(payload, "truncated") != NULL && il_bool(payload, "truncated"),
        .code = text_or_null(payload, "code"),
        .reason = text_or_null(payload, "reason"),
    };
    return true;
}

/* --- Leases and tokens ------------------------------------------------------------------------------------------ */

struct il_lease {
    interlock_step_lease_own_lease_t own;
    bool spent;
};

static interlock_step_lease_borrow_lease_t held(il_lease *lease) {
    if (lease->spent) {
        il__die("a lease was used after il_lease_release took its handle");
    }
    return (interlock_step_lease_borrow_lease_t){lease->own.__handle};
}

static il_lease *acquire(il_entity *entity, il_rejection *why, const char *name, uint64_t *ms) {
    rejection_t rejection;
    text_t lent = il__lend(name);
    interlock_step_lease_own_lease_t own;
    if (!il__may_ask(why)) {
        return NULL;
    }
    if (!interlock_step_lease_acquire(entity->handle, &lent, ms, &own, &rejection)) {
        il__refuse(why, &rejection);
        return NULL;
    }
    il_lease *lease = il__new(sizeof(*lease));
    *lease = (il_lease){own, false};
    return lease;
}

il_lease *il_acquire(il_entity *entity, il_rejection *why, const char *name) {
    return acquire(entity, why, name, NULL);
}

il_lease *il_acquire_for(il_entity *entity, il_rejection *why, const char *name, uint64_t ms) {
    return acquire(entity, why, name, &ms);
}

const char *il_lease_name(il_lease *lease) {
    text_t text;
    interlock_step_lease_method_lease_name(held(lease), &text);
    return il__text(text);
}

uint64_t il_lease_left_ms(il_lease *lease) {
    return interlock_step_lease_method_lease_left_ms(held(lease));
}

static bool extend(il_lease *lease, il_rejection *why, uint64_t *ms) {
    rejection_t rejection;
    return il__may_ask(why) &&
           (interlock_step_lease_method_lease_extend(held(lease), ms, &rejection) || il__refuse(why, &rejection));
}

bool il_lease_extend(il_lease *lease, il_rejection *why) {
    return extend(lease, why, NULL);
}

bool il_lease_extend_for(il_lease *lease, il_rejection *why, uint64_t ms) {
    return extend(lease, why, &ms);
}

bool il_lease_release(il_lease *lease, il_rejection *why) {
    rejection_t rejection;
    held(lease);
    lease->spent = true;
    return interlock_step_lease_static_lease_release(lease->own, &rejection) || il__refuse(why, &rejection);
}

uint64_t il_token(il_entity *entity) {
    return interlock_step_fencing_token(entity->handle);
}

bool il_still_holds(il_entity *entity) {
    return interlock_step_fencing_still_holds(entity->handle);
}

uint64_t il_lease_token(il_lease *lease) {
    return interlock_step_fencing_lease_token(held(lease));
}

bool il_lease_still_holds(il_lease *lease) {
    return interlock_step_fencing_still_holds_lease(held(lease));
}
