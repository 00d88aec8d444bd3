/* Rows: the author's requests as the host takes them, and its answers back. */
#include "internal.h"

#define SAME(own, generated) _Static_assert((int)(own) == (int)(generated), "the contract's order")
SAME(IL_STARTS_WITH, INTERLOCK_STEP_TYPES_OPERATOR_STARTS_WITH);
SAME(IL_EXISTS, INTERLOCK_STEP_TYPES_OPERATOR_EXISTS);
SAME(IL_BY_INDEX, INTERLOCK_STEP_ROWS_ORDER_BY_INDEX);
SAME(IL_GET, INTERLOCK_STEP_ROWS_ACTION_GET);
SAME(IL_PUT, INTERLOCK_STEP_ROWS_ACTION_PUT);
SAME(IL_UPDATE, INTERLOCK_STEP_ROWS_ACTION_UPDATE);
SAME(IL_UPSERT, INTERLOCK_STEP_ROWS_ACTION_UPSERT);
SAME(IL_CLAIM, INTERLOCK_STEP_ROWS_ACTION_CLAIM);
SAME(IL_DELETE, INTERLOCK_STEP_ROWS_ACTION_DELETE);
SAME(IL_CLAIM, INTERLOCK_STEP_ROWS_ANSWER_CLAIMED);
SAME(IL_DELETE, INTERLOCK_STEP_ROWS_ANSWER_DELETED);

/* --- What is asked ---------------------------------------------------------------------------------------------- */

static step_with_everything_list_string_t lend_texts(il_texts list) {
    step_with_everything_list_string_t lent = {il__new(list.count * sizeof(text_t)), list.count};
    for (size_t i = 0; i < list.count; i++) {
        lent.ptr[i] = il__lend(list.at[i]);
    }
    return lent;
}

static bool lend_filter(il_filter filter, interlock_step_rows_filter_t *lent, il_rejection *why) {
    lent->len = filter.count;
    lent->ptr = il__new(filter.count * sizeof(*lent->ptr));
    for (size_t i = 0; i < filter.count; i++) {
        il_all own = filter.at[i];
        interlock_step_types_list_comparison_t *group = &lent->ptr[i];
        group->len = own.count;
        group->ptr = il__new(own.count * sizeof(*group->ptr));
        for (size_t j = 0; j < own.count; j++) {
            const il_comparison *test = &own.at[j];
            group->ptr[j].field = il__lend(test->field);
            group->ptr[j].operator_ = test->is;
            if (!il__lend_value(&test->value, test->field, &group->ptr[j].value, why)) {
                return false;
            }
        }
    }
    return true;
}

static interlock_step_rows_option_order_t lend_order(il_order order) {
    interlock_step_rows_option_order_t lent = {.is_some = order.by != IL_BY_CREATED || order.descending};
    lent.val.by.tag = order.by;
    lent.val.by.val.index = il__lend(order.index);
    lent.val.descending = order.descending;
    return lent;
}

static step_with_everything_option_u32_t lend_limit(uint32_t limit) {
    return (step_with_everything_option_u32_t){limit != 0, limit};
}

static bool lend_get(const il_getting *own, interlock_step_rows_getting_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    return il__lend_value(&own->key, "key", &lent->key, why);
}

static bool lend_put(const il_putting *own, interlock_step_rows_putting_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    lent->expect.is_some = own->absent || own->expect_etag != NULL;
    lent->expect.val.tag = own->absent ? INTERLOCK_STEP_ROWS_EXPECTED_ABSENT : INTERLOCK_STEP_ROWS_EXPECTED_ETAG;
    lent->expect.val.val.etag = il__lend(own->expect_etag);
    return il__lend_value(&own->key, "key", &lent->key, why) && il__write(own->value, "value", &lent->value, why) &&
           il__lend_mutations(own->fill, &lent->fill, why);
}

static bool lend_update(const il_updating *own, interlock_step_rows_updating_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    lent->must = own->must;
    return il__lend_value(&own->key, "key", &lent->key, why) && lend_filter(own->where, &lent->where, why) &&
           il__lend_mutations(own->set, &lent->set, why);
}

static bool lend_upsert(const il_upserting *own, interlock_step_rows_upserting_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    return il__lend_value(&own->key, "key", &lent->key, why) && il__write(own->insert, "insert", &lent->insert, why) &&
           il__lend_mutations(own->fill, &lent->fill, why) && il__lend_mutations(own->set, &lent->set, why);
}

static bool lend_claim(const il_claiming *own, interlock_step_rows_claiming_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    lent->order = lend_order(own->order);
    lent->limit = lend_limit(own->limit);
    lent->delete_ = own->remove;
    lent->must = own->must;
    lent->where.is_some = own->where.count > 0;
    lent->set.is_some = own->set.count > 0;
    return lend_filter(own->where, &lent->where.val, why) && il__lend_mutations(own->set, &lent->set.val, why);
}

static bool lend_delete(const il_deleting *own, interlock_step_rows_deleting_t *lent, il_rejection *why) {
    lent->must = own->must;
    return il__lend_value(&own->key, "key", &lent->key, why) && lend_filter(own->where, &lent->where, why);
}

static bool lend_query(const il_querying *own, interlock_step_rows_querying_t *lent, il_rejection *why) {
    lent->fields = lend_texts(own->fields);
    lent->order = lend_order(own->order);
    lent->limit = lend_limit(own->limit);
    lent->after = (step_with_everything_option_string_t){own->after != NULL, il__lend(own->after)};
    return lend_filter(own->where, &lent->where, why);
}

static bool lend_operation(const il_operation *own, interlock_step_rows_operation_t *lent, il_rejection *why) {
    lent->table = il__lend(own->table);
    lent->what.tag = own->what;
    switch (own->what) {
    case IL_GET: return lend_get(&own->get, &lent->what.val.get, why);
    case IL_PUT: return lend_put(&own->put, &lent->what.val.put, why);
    case IL_UPDATE: return lend_update(&own->update, &lent->what.val.update, why);
    case IL_UPSERT: return lend_upsert(&own->upsert, &lent->what.val.upsert, why);
    case IL_CLAIM: return lend_claim(&own->claim, &lent->what.val.claim, why);
    case IL_DELETE: return lend_delete(&own->delete, &lent->what.val.delete_, why);
    }
    return false;
}

static bool lend_row_requirement(
    const il_requirement *own, interlock_step_rows_row_requirement_t *lent, il_rejection *why) {
    lent->table = il__lend(own->table);
    lent->present = !own->absent;
    return il__lend_value(&own->key, "key", &lent->key, why) && lend_filter(own->where, &lent->where, why);
}

static bool lend_entity_requirement(
    const il_requirement *own, interlock_step_rows_entity_requirement_t *lent, il_rejection *why) {
    lent->entity = il__lend(own->entity);
    lent->states = lend_texts(own->states);
    return lend_filter(own->where, &lent->where, why);
}

static bool lend_requirement(const il_requirement *own, interlock_step_rows_requirement_t *lent, il_rejection *why) {
    if (own->entity != NULL) {
        lent->tag = INTERLOCK_STEP_ROWS_REQUIREMENT_ENTITY;
        return lend_entity_requirement(own, &lent->val.entity, why);
    }
    lent->tag = INTERLOCK_STEP_ROWS_REQUIREMENT_ROW;
    return lend_row_requirement(own, &lent->val.row, why);
}

/* --- What is answered ------------------------------------------------------------------------------------------- */

static const char *text_or_null(step_with_everything_option_string_t text) {
    return text.is_some ? il__text(text.val) : NULL;
}

static void take_row(const interlock_step_rows_row_t *theirs, il_row *row) {
    row->key = il__text(theirs->key);
    row->value = il__read(theirs->value, il_format("row %s", row->key));
    row->etag = il__text(theirs->etag);
    row->created_ms = theirs->created_ms;
    row->updated_ms = theirs->updated_ms;
    row->claims = theirs->claims;
    row->claimed_by = text_or_null(theirs->claimed_by);
}

static const il_row *new_row(const interlock_step_rows_row_t *theirs) {
    il_row *row = il__new(sizeof(*row));
    take_row(theirs, row);
    return row;
}

static il_rows rows_of(interlock_step_rows_list_row_t theirs) {
    il_row *rows = il__new(theirs.len * sizeof(*rows));
    for (size_t i = 0; i < theirs.len; i++) {
        take_row(&theirs.ptr[i], &rows[i]);
    }
    return (il_rows){rows, theirs.len};
}

static il_texts texts_of(step_with_everything_list_string_t theirs) {
    const char **texts = il__new(theirs.len * sizeof(*texts));
    for (size_t i = 0; i < theirs.len; i++) {
        texts[i] = il__text(theirs.ptr[i]);
    }
    return (il_texts){texts, theirs.len};
}

static il_miss miss_of(interlock_step_rows_miss_t theirs) {
    return (il_miss){il__text(theirs.key), text_or_null(theirs.guard)};
}

static il_got got_of(const interlock_step_rows_got_t *theirs) {
    return (il_got){il__text(theirs->key), theirs->row.is_some ? new_row(&theirs->row.val) : NULL};
}

static il_written written_of(const interlock_step_rows_written_t *theirs) {
    return (il_written){theirs->inserted, new_row(&theirs->row)};
}

static il_updated updated_of(const interlock_step_rows_updated_t *theirs) {
    if (theirs->tag == INTERLOCK_STEP_ROWS_UPDATED_CHANGED) {
        return (il_updated){new_row(&theirs->val.changed), {NULL, NULL}};
    }
    return (il_updated){NULL, miss_of(theirs->val.unmatched)};
}

static il_claimed claimed_of(const interlock_step_rows_claimed_t *theirs) {
    return (il_claimed){rows_of(theirs->rows), theirs->more, texts_of(theirs->lost)};
}

static il_deleted deleted_of(const interlock_step_rows_deleted_t *theirs) {
    if (theirs->tag == INTERLOCK_STEP_ROWS_DELETED_GONE) {
        return (il_deleted){true, il__text(theirs->val.gone), {NULL, NULL}};
    }
    il_miss miss = miss_of(theirs->val.unmatched);
    return (il_deleted){false, miss.key, miss};
}

static il_page page_of(const interlock_step_rows_page_t *theirs) {
    return (il_page){rows_of(theirs->rows), text_or_null(theirs->next)};
}

static void take_answer(const interlock_step_rows_answer_t *theirs, il_answer *answer) {
    answer->what = theirs->tag;
    switch (answer->what) {
    case IL_GET: answer->got = got_of(&theirs->val.got); break;
    case IL_PUT: answer->written = written_of(&theirs->val.put); break;
    case IL_UPDATE: answer->updated = updated_of(&theirs->val.updated); break;
    case IL_UPSERT: answer->written = written_of(&theirs->val.upserted); break;
    case IL_CLAIM: answer->claimed = claimed_of(&theirs->val.claimed); break;
    case IL_DELETE: answer->deleted = deleted_of(&theirs->val.deleted); break;
    }
}

static il_answers answers_of(interlock_step_rows_list_answer_t theirs) {
    il_answer *answers = il__new(theirs.len * sizeof(*answers));
    for (size_t i = 0; i < theirs.len; i++) {
        take_answer(&theirs.ptr[i], &answers[i]);
    }
    return (il_answers){answers, theirs.len};
}

/* --- At once ---------------------------------------------------------------------------------------------------- */

/* A read: the request, the call, the answer or the refusal. */
#define READ(verb, lend, take)                                                                                       \
    text_t name = il__lend(table);                                                                                   \
    rejection_t rejection;                                                                                           \
    if (!il__may_ask(why) || !lend(&own, &lent, why)) {                                                              \
        return false;                                                                                                \
    }                                                                                                                \
    if (!interlock_step_rows_##verb(entity->handle, &name, &lent, &theirs, &rejection)) {                            \
        return il__refuse(why, &rejection);                                                                          \
    }                                                                                                                \
    *answer = take(&theirs);                                                                                         \
    return true

/* The same of a change, which may have a name. */
#define CHANGE(verb, lend, take)                                                                                     \
    text_t name = il__lend(table), op = il__lend(own.op);                                                            \
    rejection_t rejection;                                                                                           \
    if (!il__may_ask(why) || !lend(&own, &lent, why)) {                                                              \
        return false;                                                                                                \
    }                                                                                                                \
    if (!interlock_step_rows_##verb(entity->handle, &name, &lent, own.op == NULL ? NULL : &op, &theirs,              \
            &rejection)) {                                                                                           \
        return il__refuse(why, &rejection);                                                                          \
    }                                                                                                                \
    *answer = take(&theirs);                                                                                         \
    return true

bool il_row_get_as(il_entity *entity, il_rejection *why, const char *table, il_got *answer, il_getting own) {
    interlock_step_rows_getting_t lent;
    interlock_step_rows_got_t theirs;
    READ(get, lend_get, got_of);
}

bool il_row_query_as(il_entity *entity, il_rejection *why, const char *table, il_page *answer, il_querying own) {
    interlock_step_rows_querying_t lent;
    interlock_step_rows_page_t theirs;
    READ(query, lend_query, page_of);
}

bool il_row_put_as(il_entity *entity, il_rejection *why, const char *table, il_written *answer, il_putting own) {
    interlock_step_rows_putting_t lent;
    interlock_step_rows_written_t theirs;
    CHANGE(put, lend_put, written_of);
}

bool il_row_update_as(il_entity *entity, il_rejection *why, const char *table, il_updated *answer, il_updating own) {
    interlock_step_rows_updating_t lent;
    interlock_step_rows_updated_t theirs;
    CHANGE(update, lend_update, updated_of);
}

bool il_row_upsert_as(il_entity *entity, il_rejection *why, const char *table, il_written *answer, il_upserting own) {
    interlock_step_rows_upserting_t lent;
    interlock_step_rows_written_t theirs;
    CHANGE(upsert, lend_upsert, written_of);
}

bool il_row_claim_as(il_entity *entity, il_rejection *why, const char *table, il_claimed *answer, il_claiming own) {
    interlock_step_rows_claiming_t lent;
    interlock_step_rows_claimed_t theirs;
    CHANGE(claim, lend_claim, claimed_of);
}

bool il_row_delete_as(il_entity *entity, il_rejection *why, const char *table, il_deleted *answer, il_deleting own) {
    interlock_step_rows_deleting_t lent;
    interlock_step_rows_deleted_t theirs;
    CHANGE(delete, lend_delete, deleted_of);
}

bool il_transact_as(il_entity *entity, il_rejection *why, il_answers *answers, il_transaction own) {
    rejection_t rejection;
    text_t op = il__lend(own.op);
    interlock_step_rows_list_answer_t theirs;
    interlock_step_rows_list_operation_t operations = {NULL, own.operations.count};
    interlock_step_rows_list_requirement_t requirements = {NULL, own.requirements.count};
    operations.ptr = il__new(operations.len * sizeof(*operations.ptr));
    requirements.ptr = il__new(requirements.len * sizeof(*requirements.ptr));
    if (!il__may_ask(why)) {
        return false;
    }
    for (size_t i = 0; i < operations.len; i++) {
        if (!lend_operation(&own.operations.at[i], &operations.ptr[i], why)) {
            return false;
        }
    }
    for (size_t i = 0; i < requirements.len; i++) {
        if (!lend_requirement(&own.requirements.at[i], &requirements.ptr[i], why)) {
            return false;
        }
    }
    if (!interlock_step_rows_transact(
            entity->handle, &operations, &requirements, own.op == NULL ? NULL : &op, &theirs, &rejection)) {
        return il__refuse(why, &rejection);
    }
    *answers = answers_of(theirs);
    return true;
}

/* --- With the next commit --------------------------------------------------------------------------------------- */

bool il_stage(il_entity *entity, il_rejection *why, il_operation operation) {
    rejection_t rejection;
    interlock_step_rows_operation_t lent;
    return il__may_ask(why) && lend_operation(&operation, &lent, why) &&
           (interlock_step_rows_stage(entity->handle, &lent, &rejection) || il__refuse(why, &rejection));
}

bool il_require(il_entity *entity, il_rejection *why, il_requirement requirement) {
    rejection_t rejection;
    if (!il__may_ask(why)) {
        return false;
    }
    if (requirement.entity != NULL) {
        interlock_step_rows_entity_requirement_t lent;
        return lend_entity_requirement(&requirement, &lent, why) &&
               (interlock_step_rows_require_entity(entity->handle, &lent, &rejection) || il__refuse(why, &rejection));
    }
    interlock_step_rows_row_requirement_t lent;
    return lend_row_requirement(&requirement, &lent, why) &&
           (interlock_step_rows_require_row(entity->handle, &lent, &rejection) || il__refuse(why, &rejection));
}

il_answers il_row_answers(il_entity *entity) {
    interlock_step_rows_list_answer_t theirs;
    interlock_step_rows_answers(entity->handle, &theirs);
    return answers_of(theirs);
}
