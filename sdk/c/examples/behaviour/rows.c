/* Rows: one at a time, many, several at once, and with the next commit. */
#include "behaviour.h"

#include <string.h>

static il_json *job(const char *status, int n) {
    il_json *value = il_new_object();
    il_put(value, "status", status);
    il_put(value, "n", n);
    return value;
}

static il_json *keys(il_rows list) {
    il_json *found = il_new_array();
    for (size_t i = 0; i < list.count; i++) {
        il_push(found, list.at[i].key);
    }
    return found;
}

static il_json *values(il_rows list) {
    il_json *found = il_new_array();
    for (size_t i = 0; i < list.count; i++) {
        il_push(found, list.at[i].value);
    }
    return found;
}

/* The value of a changed row, or the comparison that did not hold, or `absent`. */
static il_json *value_of(il_updated updated) {
    if (updated.row != NULL) {
        return updated.row->value;
    }
    return il_of(updated.miss.guard == NULL ? "absent" : updated.miss.guard);
}

static il_json *written_as(il_written written) {
    il_json *saw = il_new_object();
    il_put(saw, "inserted", written.inserted);
    il_put(saw, "value", written.row->value);
    return saw;
}

static il_end one_at_a_time(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_written put, added, filled;
    il_got got, some, nobody;
    il_updated changed, unmatched, absent;
    il_deleted gone, again;
    il_filter is_new = IL_WHERE({"status", IL_EQ, il_lit("new")});
    il_mutations one_more = IL_MUTATIONS(il_set("status", il_lit("old")), il_increment("n", il_lit(1)));
    il_json *bare = il_new_object();
    il_put(bare, "status", "new");

    IL_TRY(why, il_row_put(entity, &why, "jobs", &put, .key = il_lit("a"), .value = job("new", 1), .absent = true));
    IL_TRY(why, il_row_get(entity, &why, "jobs", &got, .key = il_lit("a")));
    IL_TRY(why, il_row_get(entity, &why, "jobs", &some, .key = il_lit("a"), .fields = IL_TEXTS("n")));
    IL_TRY(why, il_row_get(entity, &why, "jobs", &nobody, .key = il_lit("nobody")));
    IL_TRY(why, il_row_update(entity, &why, "jobs", &changed, .key = il_lit("a"), .where = is_new, .set = one_more));
    IL_TRY(why, il_row_update(entity, &why, "jobs", &unmatched, .key = il_lit("a"), .where = is_new,
                    .set = IL_MUTATIONS(il_set("status", il_lit("older")))));
    IL_TRY(why, il_row_update(entity, &why, "jobs", &absent, .key = il_lit("nobody"),
                    .set = IL_MUTATIONS(il_set("status", il_lit("old")))));
    IL_TRY(why, il_row_upsert(entity, &why, "jobs", &added, .key = il_lit("a"), .insert = job("new", 0),
                    .set = IL_MUTATIONS(il_increment("n", il_lit(5)))));
    IL_TRY(why, il_row_upsert(entity, &why, "jobs", &filled, .key = il_lit("b"), .insert = bare,
                    .fill = IL_MUTATIONS(il_set("n", il_from("event.value")))));
    IL_TRY(why, il_row_delete(entity, &why, "jobs", &gone, .key = il_lit("a")));
    IL_TRY(why, il_row_delete(entity, &why, "jobs", &again, .key = il_lit("a")));
    if (got.row == NULL || some.row == NULL) {
        return il_fail_permanent("no-row", "a is not there");
    }

    il_json *both = il_new_array(), *saw = il_new_object();
    il_push(both, gone.gone);
    il_push(both, again.gone);
    il_put(saw, "put", put.inserted);
    il_put(saw, "got", got.row->value);
    il_put(saw, "key", got.row->key);
    il_put(saw, "claims", got.row->claims);
    il_put(saw, "claimed", (bool)(got.row->claimed_by != NULL));
    il_put(saw, "fields", some.row->value);
    il_put(saw, "nobody", (bool)(nobody.row == NULL));
    il_put(saw, "changed", value_of(changed));
    il_put(saw, "unmatched", value_of(unmatched));
    il_put(saw, "absent", value_of(absent));
    il_put(saw, "added", written_as(added));
    il_put(saw, "filled", written_as(filled));
    il_put(saw, "gone", both);
    return answer(entity, saw);
}

static il_end etag(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why, stale, there;
    il_written first, second, other;
    IL_TRY(why, il_row_put(entity, &why, "jobs", &first, .key = il_lit("a"), .value = job("new", 1)));
    IL_TRY(why, il_row_put(entity, &why, "jobs", &second, .key = il_lit("a"), .value = job("new", 2),
                    .expect_etag = first.row->etag));
    bool third = il_row_put(entity, &stale, "jobs", &other, .key = il_lit("a"), .value = job("new", 3),
        .expect_etag = first.row->etag);
    bool fourth = il_row_put(entity, &there, "jobs", &other, .key = il_lit("a"), .value = job("new", 4), .absent = true);
    il_json *saw = il_new_object();
    il_put(saw, "n", il_get(second.row->value, "n"));
    il_put(saw, "differ", (bool)(strcmp(first.row->etag, second.row->etag) != 0));
    il_put(saw, "stale", third ? "accepted" : stale.code);
    il_put(saw, "there", fourth ? "accepted" : there.code);
    return answer(entity, saw);
}

/* The rows with an `n` of 2 or more, the greatest first, two at a time and their `n` alone. */
static il_end query(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_page first, second, either;
    il_querying two = {
        .where = IL_WHERE({"n", IL_GE, il_lit(2)}),
        .order = {IL_BY_INDEX, "by-n", true},
        .limit = 2,
        .fields = IL_TEXTS("n"),
    };
    IL_TRY(why, il_row_query_as(entity, &why, "jobs", &first, two));
    if (first.next == NULL) {
        return il_fail_permanent("no-page", "there is no second page");
    }
    two.after = first.next;
    IL_TRY(why, il_row_query_as(entity, &why, "jobs", &second, two));
    IL_TRY(why, il_row_query(entity, &why, "jobs", &either,
                    .where = IL_ANY(IL_ALL({"n", IL_EQ, il_lit(1)}), IL_ALL({"status", IL_STARTS_WITH, il_lit("d")}))));
    il_json *saw = il_new_object();
    il_put(saw, "first", keys(first.rows));
    il_put(saw, "values", values(first.rows));
    il_put(saw, "second", keys(second.rows));
    il_put(saw, "more", (bool)(second.next != NULL));
    il_put(saw, "either", keys(either.rows));
    return answer(entity, saw);
}

static il_end claim(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_claimed taken, rest, none;
    il_updated settled;
    IL_TRY(why, il_row_claim(entity, &why, "jobs", &taken, .limit = 2));
    if (taken.rows.count == 0) {
        return il_fail_permanent("no-claim", "nothing was claimed");
    }
    const il_row *first = &taken.rows.at[0];
    IL_TRY(why, il_row_update(entity, &why, "jobs", &settled, .key = il_lit(first->key),
                    .where = IL_WHERE({"claimed_by", IL_EQ, il_from("execution")}),
                    .set = IL_MUTATIONS(il_set("status", il_lit("done")))));
    IL_TRY(why, il_row_claim(entity, &why, "jobs", &rest));
    IL_TRY(why, il_row_claim(entity, &why, "jobs", &none));
    il_json *saw = il_new_object();
    bool mine = first->claimed_by != NULL && strcmp(first->claimed_by, il_execution(entity)) == 0;
    il_put(saw, "taken", keys(taken.rows));
    il_put(saw, "status", il_get(first->value, "status"));
    il_put(saw, "claims", first->claims);
    il_put(saw, "mine", mine);
    il_put(saw, "settled", (bool)(settled.row != NULL));
    il_put(saw, "rest", keys(rest.rows));
    il_put(saw, "none", keys(none.rows));
    return answer(entity, saw);
}

static il_end take(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_claimed taken, marked;
    IL_TRY(why, il_row_claim(entity, &why, "jobs", &taken, .where = IL_WHERE({"n", IL_GT, il_lit(1)}),
                    .order = {IL_BY_INDEX, "by-n", true}, .limit = 1, .remove = true));
    IL_TRY(why, il_row_claim(entity, &why, "jobs", &marked, .where = IL_WHERE({"n", IL_EQ, il_lit(1)}),
                    .set = IL_MUTATIONS(il_set("status", il_lit("mine")), il_increment("n", il_lit(10)))));
    il_json *saw = il_new_object();
    il_put(saw, "taken", keys(taken.rows));
    il_put(saw, "marked", values(marked.rows));
    return answer(entity, saw);
}

/* Four operations and two conditions, one transaction. */
static il_end transact(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_answers done;
    il_mutations one_more = IL_MUTATIONS(il_increment("n", il_lit(1)));
    IL_TRY(why, il_transact(entity, &why, &done,
                    .operations = IL_OPERATIONS(il_op_put("jobs", .key = il_lit("x"), .value = job("new", 1)),
                        il_op_update("jobs", .key = il_lit("x"), .set = one_more, .must = true),
                        il_op_get("jobs", .key = il_lit("x")),
                        il_op_delete("jobs", .key = il_lit("a"), .where = IL_WHERE({"n", IL_LT, il_lit(100)}))),
                    .requirements = IL_REQUIREMENTS(
                        il_need_row("jobs", .key = il_lit("a"), .where = IL_WHERE({"n", IL_EQ, il_lit(7)})),
                        il_need_row("jobs", .key = il_lit("z"), .absent = true))));
    if (done.count != 4 || done.at[2].what != IL_GET || done.at[2].got.row == NULL) {
        return il_fail_permanent("answers", "expected four answers with a row got, got %zu", done.count);
    }
    il_json *saw = il_new_object();
    il_put(saw, "put", done.at[0].written.inserted);
    il_put(saw, "changed", value_of(done.at[1].updated));
    il_put(saw, "got", done.at[2].got.row->value);
    il_put(saw, "deleted", done.at[3].deleted.gone);
    return answer(entity, saw);
}

/* The second operation must match and does not: neither is done. */
static il_end must(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_answers done;
    bool taken = il_transact(entity, &why, &done,
        .operations = IL_OPERATIONS(il_op_put("jobs", .key = il_lit("x"), .value = job("new", 1)),
            il_op_update("jobs", .key = il_lit("nobody"), .set = IL_MUTATIONS(il_increment("n", il_lit(1))),
                .must = true)));
    return answer_refused(entity, taken, &why);
}

/* With a save: conditions on a row and on an entity, and two changes. */
static il_end stage(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_got before;
    IL_TRY(why, il_require(entity, &why,
                    il_need_row("jobs", .key = il_lit("a"), .where = IL_WHERE({"status", IL_EQ, il_lit("pending")}))));
    IL_TRY(why, il_require(entity, &why, il_need_entity(il_id(entity), .states = IL_TEXTS(il_state(entity)))));
    IL_TRY(why, il_stage(entity, &why,
                    il_op_update("jobs", .key = il_lit("a"), .set = IL_MUTATIONS(il_set("n", il_from("data.saw.n"))),
                        .must = true)));
    IL_TRY(why, il_stage(entity, &why, il_op_put("jobs", .key = il_lit("b"), .value = job("new", 2))));
    IL_TRY(why, il_row_get(entity, &why, "jobs", &before, .key = il_lit("b")));
    IL_TRY(why, il_save(entity, &why, .set = IL_MUTATIONS(il_set("data.saw.n", il_lit(40)))));
    il_answers done = il_row_answers(entity);
    if (done.count != 2 || done.at[0].what != IL_UPDATE || done.at[1].what != IL_PUT) {
        return il_fail_permanent("answers", "expected two answers, got %zu", done.count);
    }
    il_json *saw = il_new_object();
    il_put(saw, "before", (bool)(before.row != NULL));
    il_put(saw, "a", value_of(done.at[0].updated));
    il_put(saw, "b", done.at[1].written.inserted);
    return answer(entity, saw);
}

/* A condition that does not hold refuses the save, and what was staged is dropped. */
static il_end require(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    IL_TRY(why, il_require(entity, &why,
                    il_need_row("jobs", .key = il_lit("a"), .where = IL_WHERE({"n", IL_GT, il_lit(100)}))));
    IL_TRY(why, il_stage(entity, &why, il_op_put("jobs", .key = il_lit("b"), .value = job("new", 2))));
    bool saved = il_save(entity, &why, .set = IL_MUTATIONS(il_set("data.saw.n", il_lit(1))));
    return answer_refused(entity, saved, &why);
}

static bool count(il_entity *entity, il_rejection *why, const char *key, int by, const char *op, il_updated *updated) {
    return il_row_update(entity, why, "jobs", updated, .key = il_lit(key),
        .set = IL_MUTATIONS(il_increment("n", il_lit(by))), .op = op);
}

/* Counts under a name of the request and fails; the second attempt, which asks for something else first, is told of
 * it. */
static il_end named(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_updated other, counted;
    if (il_attempt(entity) > 1) {
        IL_TRY(why, count(entity, &why, "b", 1, NULL, &other));
    }
    IL_TRY(why, count(entity, &why, "a", 1, "count", &counted));
    if (il_attempt(entity) == 1) {
        return il_fail_retry("again", "counted, and failed");
    }
    il_json *saw = il_new_object();
    il_put(saw, "attempt", il_attempt(entity));
    il_put(saw, "a", value_of(counted));
    return answer(entity, saw);
}

/* Counts twice and fails; the second attempt asks the same and counts no more. */
static il_end remembered(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_updated first, second;
    IL_TRY(why, count(entity, &why, "a", 1, NULL, &first));
    IL_TRY(why, count(entity, &why, "a", 1, NULL, &second));
    if (il_attempt(entity) == 1) {
        return il_fail_retry("again", "counted, and failed");
    }
    il_json *saw = il_new_object();
    il_put(saw, "attempt", il_attempt(entity));
    il_put(saw, "first", value_of(first));
    il_put(saw, "second", value_of(second));
    return answer(entity, saw);
}

static il_end id_reused(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_updated counted;
    IL_TRY(why, count(entity, &why, "a", 1, "count", &counted));
    return answer_refused(entity, count(entity, &why, "a", 2, "count", &counted), &why);
}

static il_end table_denied(il_entity *entity, const il_json *value) {
    (void)value;
    il_rejection why;
    il_got got;
    return answer_refused(entity, il_row_get(entity, &why, "closed", &got, .key = il_lit("a")), &why);
}

const behaviour_t rows[] = {{"rows", one_at_a_time}, {"rows-etag", etag}, {"rows-query", query}, {"rows-claim", claim},
    {"rows-take", take}, {"rows-transact", transact}, {"rows-must", must}, {"rows-stage", stage},
    {"rows-require", require}, {"rows-named", named}, {"rows-remembered", remembered}, {"rows-id-reused", id_reused},
    {"rows-denied", table_denied}, {NULL, NULL}};
