/* Steps of an Interlock machine, in C.
 *
 *     #include "interlock.h"
 *
 *     static il_end resize(il_entity *pool) {
 *         il_json *data = il_data(pool);
 *         int64_t target = il_int(data, "target");
 *         if (target > 64) {
 *             return il_fail_permanent("too-large", "no pool has %lld nodes", (long long)target);
 *         }
 *         il_put(data, "size", target);
 *         return il_transition(pool, "ready", .data = data);
 *     }
 *
 *     IL_STEPS({"resize", resize});
 *
 * The host owns the entity's state. A step reads a snapshot of it, does its work and asks for a transition; the host
 * decides inside one transaction and answers. A step runs at least once and its accepted transition happens exactly
 * once: what it does outside must bear repetition, and should carry il_token() so that a receiver can refuse a late
 * owner.
 *
 * Memory: everything that a function of this header gives out lives until the step returns; nothing is to be freed.
 * Texts that are handed in are copied or used before the call returns. A step that goes through a lot of data takes
 * il_mark_here() and il_release(). malloc() and free() work beside it.
 *
 * Refusals: a function that asks the host for something takes `il_rejection *why` behind the entity and says whether
 * it was accepted; `why` may be NULL. il_fail_rejection() makes it the failure of the attempt.
 *
 * Texts are UTF-8 and end with a zero byte. Fields that are left out of a request are none: those are zeros.
 */
#ifndef INTERLOCK_H
#define INTERLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before C23 `true` is an int, and il_put(data, "ready", true) would put 1. Defined so, both have the type bool and work
 * in #if as well. What a comparison gives is an int all the same: il_put(data, "more", (bool)(a < b)). */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 202311L)
#undef true
#undef false
#define true ((_Bool)+1u)
#define false ((_Bool)+0u)
#endif

#define IL_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#define IL_MUST_USE __attribute__((warn_unused_result))

/* --- Steps ------------------------------------------------------------------------------------------------------ */

/* The entity as this attempt read it, and the right to ask for its next state. */
typedef struct il_entity il_entity;

/* How a step ended. Made by il_transition() and the il_fail functions; a step returns it as it is. */
typedef struct il_end {
    const struct il_failed *failed;
} il_end;

typedef struct il_step {
    const char *name; /* as the manifest spells it */
    il_end (*run)(il_entity *entity);
} il_step;

/* The steps of the component, once: IL_STEPS({"plan", plan}, {"verify", verify}); */
#define IL_STEPS(...) const il_step il_steps[] = {__VA_ARGS__, {NULL, NULL}}
extern const il_step il_steps[];

/* --- Documents -------------------------------------------------------------------------------------------------- */

/* A value of JSON; integers are exact. What this header has no function for is in vendor/yyjson.h: an il_json is a
 * yyjson_mut_val of the document il_document(). */
typedef struct yyjson_mut_val il_json;
struct yyjson_mut_doc *il_document(void);

typedef enum il_type { IL_NONE, IL_NULL, IL_BOOL, IL_INTEGER, IL_NUMBER, IL_TEXT, IL_ARRAY, IL_OBJECT } il_type;

/* What it is; IL_NONE for NULL. IL_INTEGER fits int64_t or uint64_t, IL_NUMBER is a double. */
il_type il_type_of(const il_json *value);

/* The member, or the item, or NULL if there is none. */
il_json *il_get(const il_json *object, const char *key);
il_json *il_at(const il_json *array, size_t index);
/* How many items or members it has. */
size_t il_length(const il_json *value);
/* The name of the member at this place, or NULL. */
const char *il_name_at(const il_json *object, size_t index);

/* Typed reading of a member; with the key NULL, of the value itself.
 *
 * What is not there or of another type reads as zero and is remembered: whatever the step then asks for is refused
 * before the host is asked, and the step ends as a permanent failure with the code `data-shape`, or `desired-shape`,
 * `outputs-shape`, `payload-shape`, `row-shape`, that says where, what was expected and what was got. il_int refuses
 * what does not fit; il_number takes integers that a double has exactly. */
int64_t il_int(const il_json *value, const char *key);
uint64_t il_uint(const il_json *value, const char *key);
double il_number(const il_json *value, const char *key);
bool il_bool(const il_json *value, const char *key);
const char *il_text(const il_json *value, const char *key);
il_json *il_array(const il_json *value, const char *key);
il_json *il_object(const il_json *value, const char *key);
/* Whether everything so far had the expected type: to be asked before something is done outside. */
bool il_shape_ok(void);
/* The failure that says where it had not. */
IL_MUST_USE il_end il_fail_shape(void);

/* New values. il_of takes any integer, a double, a bool, a text or an il_json. */
il_json *il_new_object(void);
il_json *il_new_array(void);
il_json *il_null(void);
il_json *il_of_int(int64_t value);
il_json *il_of_uint(uint64_t value);
il_json *il_of_number(double value);
il_json *il_of_bool(bool value);
il_json *il_of_text(const char *text);
il_json *il_of_json(const il_json *value);
#define il_of(value)                                                                                                 \
    _Generic((value), bool: il_of_bool, signed char: il_of_int, short: il_of_int, int: il_of_int, long: il_of_int,   \
        long long: il_of_int, unsigned char: il_of_uint, unsigned short: il_of_uint, unsigned int: il_of_uint,       \
        unsigned long: il_of_uint, unsigned long long: il_of_uint, float: il_of_number, double: il_of_number,        \
        char *: il_of_text, const char *: il_of_text, il_json *: il_of_json, const il_json *: il_of_json)(value)

/* Sets a member, adds an item. What stands somewhere already is copied. */
#define il_put(object, key, value) il_put_json(object, key, il_of(value))
#define il_push(array, value) il_push_json(array, il_of(value))
void il_put_json(il_json *object, const char *key, il_json *value);
void il_push_json(il_json *array, il_json *value);
/* Takes a member away; false if there was none. */
bool il_drop(il_json *object, const char *key);
il_json *il_copy(const il_json *value);

/* From text and back. NULL, with the problem, for what is no JSON or has a number past 64 bits. `problem` may be
 * NULL. il_print gives NULL for what has no text as JSON: a number that is not finite, a text that is no UTF-8. */
il_json *il_parse(const char *text, const char **problem);
const char *il_print(const il_json *value);

/* A text made as by printf. */
const char *il_format(const char *format, ...) IL_PRINTF(1, 2);

/* Releases everything that was given out since the mark: the mark, values of JSON, what was put into older ones since. */
typedef struct il_mark il_mark;
il_mark *il_mark_here(void);
void il_release(il_mark *mark);

/* --- Refusals and failures -------------------------------------------------------------------------------------- */

typedef enum il_kind {
    IL_INVALID,     /* malformed, or violates a declared schema */
    IL_NOT_FOUND,   /* the thing named does not exist */
    IL_DENIED,      /* the machine was not granted this */
    IL_LATE,        /* it concerns something past */
    IL_FENCED,      /* the caller no longer holds what it acts on */
    IL_BUSY,        /* somebody else holds it */
    IL_NOT_ALLOWED, /* the machine does not declare this move, or not from here */
    IL_CONFLICT,    /* what was read has changed since: il_reload, decide again */
    IL_GUARD,       /* a declared guard or requirement does not hold */
    IL_LIMIT,       /* a named limit would be passed */
    IL_UNAVAILABLE, /* the host cannot do it now, or not in this release */
} il_kind;
const char *il_kind_name(il_kind kind);

/* A decided no. Nothing was changed. */
typedef struct il_rejection {
    il_kind kind;
    const char *code;     /* the exact rule, stable across releases */
    const char *subject;  /* what it is about */
    const char *expected; /* what would have been accepted */
    const char *got;      /* what was found instead */
    bool retryable;       /* whether the same request can be accepted later, unchanged */
    bool has_retry_after;
    uint64_t retry_after_ms; /* when it makes sense to try again */
    const il_json *detail;   /* more for programs, shape by `code`; or NULL */
} il_rejection;

/* Retries would not help: take the declared failure path at once. `code` is one word for programs. */
IL_MUST_USE il_end il_fail_permanent(const char *code, const char *format, ...) IL_PRINTF(2, 3);
/* Try again, by the state's declared retry policy; after `ms` at the earliest. */
IL_MUST_USE il_end il_fail_retry(const char *code, const char *format, ...) IL_PRINTF(2, 3);
IL_MUST_USE il_end il_fail_retry_after(uint64_t ms, const char *code, const char *format, ...) IL_PRINTF(3, 4);
/* A retry if the rejection is retryable, else permanent, under its code. */
IL_MUST_USE il_end il_fail_rejection(const il_rejection *why);

/* Returns from the step with that failure if what is asked is refused: IL_TRY(why, il_save(pool, &why, .data = data)); */
#define IL_TRY(why, asked)                                                                                           \
    do {                                                                                                             \
        if (!(asked)) {                                                                                              \
            return il_fail_rejection(&(why));                                                                        \
        }                                                                                                            \
    } while (0)

/* --- The entity ------------------------------------------------------------------------------------------------- */

typedef enum il_event_kind {
    IL_SIGNAL, IL_TIMER, IL_DEADLINE, IL_TRANSITION, IL_DESIRED_CHANGED, IL_FAILURE, IL_CREATED, IL_CHILD, IL_JOIN,
    IL_EFFECT, IL_CANCEL, IL_OPERATOR, IL_OTHER,
} il_event_kind;
/* `signal`, `desired-changed`, ... */
const char *il_event_kind_name(il_event_kind kind);

/* What entered the visit: stored, the same for every attempt of it. */
typedef struct il_event {
    const char *id;
    il_event_kind kind;
    const char *name;
    il_json *payload; /* NULL if nothing came with it */
    uint64_t at_ms;   /* since 1970, when the host committed it */
} il_event;

const char *il_id(il_entity *entity);        /* machine/key */
const char *il_key(il_entity *entity);       /* the key alone */
const char *il_execution(il_entity *entity); /* the same over all steps and attempts of the operation */
uint32_t il_attempt(il_entity *entity);      /* which try of this visit, from 1 */
const char *il_state(il_entity *entity);
uint64_t il_version(il_entity *entity); /* to read and to show */
const il_event *il_event_of(il_entity *entity);

/* Copies of the documents, the step's to change; NULL where there is none. */
il_json *il_desired(il_entity *entity);
il_json *il_data(il_entity *entity);
il_json *il_outputs(il_entity *entity);

/* Whether somebody asked for the execution to be cancelled: the step decides where to stop safely. */
bool il_cancel_requested(il_entity *entity);
/* Milliseconds of real time before the host ends this attempt. */
uint64_t il_deadline_ms(il_entity *entity);

/* A value for the host: il_lit(x) is x, il_from names where the host finds it in the transaction: "now", "now+5m",
 * "execution", "event.size", "data.size", "row.status". */
typedef struct il_value {
    const il_json *json;
    const char *from;
} il_value;
#define il_lit(value) ((il_value){.json = il_of(value)})
#define il_from(source) ((il_value){.from = (source)})

/* One change of one field, applied by the host inside the transaction, in order. */
typedef struct il_mutation {
    uint8_t what;
    const char *field;
    il_value value;
    uint32_t limit;
} il_mutation;
il_mutation il_set(const char *field, il_value value);
il_mutation il_increment(const char *field, il_value value);
il_mutation il_remove(const char *field);
il_mutation il_append(const char *field, il_value value, uint32_t limit); /* keeps the newest */
il_mutation il_max(const char *field, il_value value);
il_mutation il_min(const char *field, il_value value);

/* A published status of the entity: IL_CONDITIONS({"NodesPlaced", IL_TRUE, "Placed", "all nodes have a host"}). */
typedef enum il_status { IL_TRUE, IL_FALSE, IL_UNKNOWN } il_status;
typedef struct il_condition {
    const char *type;
    il_status status;
    const char *reason;
    const char *message;
} il_condition;

typedef struct il_pair {
    const char *name;
    const char *value;
} il_pair;

/* Lists: IL_MUTATIONS(il_set("data.size", il_lit(4)), il_remove("data.next")). */
typedef struct il_mutations { const il_mutation *at; size_t count; } il_mutations;
typedef struct il_conditions { const il_condition *at; size_t count; } il_conditions;
typedef struct il_pairs { const il_pair *at; size_t count; } il_pairs;
typedef struct il_texts { const char *const *at; size_t count; } il_texts;
#define IL_LIST(list, item, ...) ((list){(item[]){__VA_ARGS__}, sizeof((item[]){__VA_ARGS__}) / sizeof(item)})
#define IL_MUTATIONS(...) IL_LIST(il_mutations, const il_mutation, __VA_ARGS__)
#define IL_CONDITIONS(...) IL_LIST(il_conditions, const il_condition, __VA_ARGS__)
#define IL_PAIRS(...) IL_LIST(il_pairs, const il_pair, __VA_ARGS__)
#define IL_TEXTS(...) IL_LIST(il_texts, const char *const, __VA_ARGS__)

typedef struct il_change {
    const char *to;       /* the state to enter */
    const il_json *data;  /* replaces the document; NULL keeps it */
    const il_json *outputs;
    il_mutations set; /* applied after that */
    il_conditions conditions;
} il_change;

/* Asks for the next state, with everything staged: il_transition(pool, "ready", .data = data). Accepted means
 * durable, and this attempt is over. One is accepted per attempt. */
#define il_transition(entity, target, ...) il_transition_to(entity, (il_change){.to = (target), __VA_ARGS__})
IL_MUST_USE il_end il_transition_to(il_entity *entity, il_change change);
/* Why it was refused, or NULL if it was not. After a refusal nothing has changed and the step may ask for something
 * else; returned as it is, the end is il_fail_rejection's. */
const il_rejection *il_refused(il_end end);

/* Puts a checkpoint on record, with everything staged: il_save(pool, &why, .data = data). A later attempt of this
 * visit begins from here. The field `to` is without meaning. */
#define il_save(entity, why, ...) il_save_as(entity, why, (il_change){.to = NULL, __VA_ARGS__})
IL_MUST_USE bool il_save_as(il_entity *entity, il_rejection *why, il_change checkpoint);

/* Reads the entity again, after a conflict, and drops what was staged. */
IL_MUST_USE bool il_reload(il_entity *entity, il_rejection *why);

/* --- Timers that the state declares with due = "step"; staged for the next transition or save -------------------- */

IL_MUST_USE bool il_timer_after(il_entity *entity, il_rejection *why, const char *name, uint64_t ms);
IL_MUST_USE bool il_timer_at(il_entity *entity, il_rejection *why, const char *name, int64_t unix_ms);
IL_MUST_USE bool il_timer_cancel(il_entity *entity, il_rejection *why, const char *name);

/* --- Requests to targets that the machine declares; staged for the next transition or save ----------------------- */

typedef struct il_outbound {
    const char *target;
    il_pairs params;  /* what the placeholders of its URL stand for */
    il_pairs headers; /* at most 16; credentials are the target's business */
    const il_json *body;
} il_outbound;

/* il_request(order, &why, "tickets", .params = IL_PAIRS({"project", "atlas"}), .body = ticket) */
#define il_request(entity, why, name, ...) il_request_to(entity, why, (il_outbound){.target = (name), __VA_ARGS__})
IL_MUST_USE bool il_request_to(il_entity *entity, il_rejection *why, il_outbound outbound);

/* What came of one: the payload of an event of the kind IL_EFFECT. */
typedef struct il_effect {
    const char *effect; /* the Idempotency-Key it was sent under, the same over all tries */
    uint64_t number;    /* in its entity's outbox */
    const char *target;
    const char *execution; /* that asked for it */
    uint64_t status;       /* of the answer; 0 if there was none */
    il_json *body;         /* JSON as it is, else as text; NULL if there is none */
    bool truncated;        /* there was more of it than is kept */
    const char *code;      /* why it was given up: refused, exhausted, denied, withdrawn, fenced; NULL if it was done */
    const char *reason;    /* the same for people */
} il_effect;
/* False if the event that entered the visit is about something else. */
bool il_effect_of(il_entity *entity, il_effect *effect);

/* --- Leases: named exclusive rights of the execution, apart from its entity -------------------------------------- */

typedef struct il_lease il_lease;

/* Never waits. NULL if it is refused. The second is for so many milliseconds, the first for what is declared. */
IL_MUST_USE il_lease *il_acquire(il_entity *entity, il_rejection *why, const char *name);
IL_MUST_USE il_lease *il_acquire_for(il_entity *entity, il_rejection *why, const char *name, uint64_t ms);
const char *il_lease_name(il_lease *lease);
uint64_t il_lease_left_ms(il_lease *lease); /* 0 if it is lost */
IL_MUST_USE bool il_lease_extend(il_lease *lease, il_rejection *why);
IL_MUST_USE bool il_lease_extend_for(il_lease *lease, il_rejection *why, uint64_t ms);
/* Gives it back, whatever the answer; the handle is then spent, and using it again is a bug that aborts. */
IL_MUST_USE bool il_lease_release(il_lease *lease, il_rejection *why);

/* --- Fencing tokens, to carry outside: a receiver that remembers the highest one refuses lower ones -------------- */

uint64_t il_token(il_entity *entity);
bool il_still_holds(il_entity *entity);
uint64_t il_lease_token(il_lease *lease);
bool il_lease_still_holds(il_lease *lease);

/* --- The host's log. printf and puts arrive there too, as info; fprintf(stderr) as error ------------------------- */

typedef enum il_level { IL_TRACE, IL_DEBUG, IL_INFO, IL_WARN, IL_ERROR } il_level;
void il_log(il_level level, const char *format, ...) IL_PRINTF(2, 3);
/* il_log_with(IL_WARN, IL_PAIRS({"zone", "b"}), "found %d nodes", nodes) */
void il_log_with(il_level level, il_pairs fields, const char *format, ...) IL_PRINTF(3, 4);

/* --- Rows of tables that the machine names ----------------------------------------------------------------------- */

typedef enum il_operator {
    IL_EQ, IL_NE, IL_LT, IL_LE, IL_GT, IL_GE, IL_IN, IL_NOT_IN, IL_EXISTS, IL_CONTAINS, IL_STARTS_WITH,
} il_operator;

/* A test of a field: {"status", IL_EQ, il_lit("pending")}. */
typedef struct il_comparison {
    const char *field;
    il_operator is;
    il_value value;
} il_comparison;
typedef struct il_all { const il_comparison *at; size_t count; } il_all;
typedef struct il_filter { const il_all *at; size_t count; } il_filter;

/* IL_WHERE(test, test): all of them. IL_ANY(IL_ALL(test, test), IL_ALL(test)): any of these. None matches all. */
#define IL_ALL(...) IL_LIST(il_all, const il_comparison, __VA_ARGS__)
#define IL_ANY(...) IL_LIST(il_filter, const il_all, __VA_ARGS__)
#define IL_WHERE(...) IL_ANY(IL_ALL(__VA_ARGS__))
#define IL_WHERE_ANYTHING IL_ANY({NULL, 0})

/* The order of a query or claim: IL_BY_CREATED, first in, first out, if it is left out. */
typedef enum il_order_by { IL_BY_CREATED, IL_BY_UPDATED, IL_BY_INDEX } il_order_by;
typedef struct il_order {
    il_order_by by;
    const char *index; /* with IL_BY_INDEX */
    bool descending;
} il_order;

/* `fields`: top-level fields of the value to answer with; none means all of it.
 * `op`: a name of the step's own for the request, under which its answer is remembered; without meaning for what is
 * staged or part of il_transact.
 * `must`: refuses the whole request as `guard` if it matches nothing. */
typedef struct il_getting { il_value key; il_texts fields; } il_getting;
typedef struct il_putting {
    il_value key;
    const il_json *value;
    il_mutations fill;       /* applied to that value */
    bool absent;             /* expects no row */
    const char *expect_etag; /* expects a row with this etag */
    il_texts fields;
    const char *op;
} il_putting;
typedef struct il_updating {
    il_value key;
    il_filter where;
    il_mutations set;
    il_texts fields;
    bool must;
    const char *op;
} il_updating;
typedef struct il_upserting {
    il_value key;
    const il_json *insert; /* its value if it is absent */
    il_mutations fill;     /* applied to that */
    il_mutations set;      /* the changes if it is there */
    il_texts fields;
    const char *op;
} il_upserting;
typedef struct il_claiming {
    il_filter where;  /* none takes what the table declares; IL_WHERE_ANYTHING whatever there is */
    il_mutations set; /* none marks them as the table declares */
    il_order order;
    uint32_t limit; /* 0 takes 10 */
    bool remove;    /* removes them instead of marking them */
    il_texts fields;
    bool must;
    const char *op;
} il_claiming;
typedef struct il_deleting { il_value key; il_filter where; bool must; const char *op; } il_deleting;
typedef struct il_querying {
    il_filter where;
    il_order order;
    uint32_t limit;    /* 0 takes 10 */
    const char *after; /* the `next` of an earlier answer */
    il_texts fields;
} il_querying;

typedef struct il_row {
    const char *key;
    il_json *value;
    const char *etag;
    uint64_t created_ms;
    uint64_t updated_ms;
    uint32_t claims;        /* how often it was claimed */
    const char *claimed_by; /* or NULL */
} il_row;
typedef struct il_rows { const il_row *at; size_t count; } il_rows;

typedef struct il_miss { const char *key; const char *guard; /* NULL if there is no such row */ } il_miss;
typedef struct il_got { const char *key; const il_row *row; /* or NULL */ } il_got;
typedef struct il_written { bool inserted; const il_row *row; } il_written;
typedef struct il_updated { const il_row *row; /* NULL: see `miss` */ il_miss miss; } il_updated;
typedef struct il_claimed { il_rows rows; bool more; il_texts lost; } il_claimed;
typedef struct il_deleted { bool gone; /* false: see `miss` */ const char *key; il_miss miss; } il_deleted;
typedef struct il_page { il_rows rows; const char *next; /* or NULL */ } il_page;

/* At once: il_row_get(e, &why, "jobs", &got, .key = il_lit("j1")). */
#define il_row_get(entity, why, table, answer, ...)                                                                  \
    il_row_get_as(entity, why, table, answer, (il_getting){__VA_ARGS__})
#define il_row_put(entity, why, table, answer, ...)                                                                  \
    il_row_put_as(entity, why, table, answer, (il_putting){__VA_ARGS__})
#define il_row_update(entity, why, table, answer, ...)                                                               \
    il_row_update_as(entity, why, table, answer, (il_updating){__VA_ARGS__})
#define il_row_upsert(entity, why, table, answer, ...)                                                               \
    il_row_upsert_as(entity, why, table, answer, (il_upserting){__VA_ARGS__})
#define il_row_claim(entity, why, table, answer, ...)                                                                \
    il_row_claim_as(entity, why, table, answer, (il_claiming){__VA_ARGS__})
#define il_row_delete(entity, why, table, answer, ...)                                                               \
    il_row_delete_as(entity, why, table, answer, (il_deleting){__VA_ARGS__})
#define il_row_query(entity, why, table, answer, ...)                                                                \
    il_row_query_as(entity, why, table, answer, (il_querying){__VA_ARGS__})
#define IL_ASKS IL_MUST_USE bool
IL_ASKS il_row_get_as(il_entity *, il_rejection *why, const char *table, il_got *answer, il_getting);
IL_ASKS il_row_put_as(il_entity *, il_rejection *why, const char *table, il_written *answer, il_putting);
IL_ASKS il_row_update_as(il_entity *, il_rejection *why, const char *table, il_updated *answer, il_updating);
IL_ASKS il_row_upsert_as(il_entity *, il_rejection *why, const char *table, il_written *answer, il_upserting);
IL_ASKS il_row_claim_as(il_entity *, il_rejection *why, const char *table, il_claimed *answer, il_claiming);
IL_ASKS il_row_delete_as(il_entity *, il_rejection *why, const char *table, il_deleted *answer, il_deleting);
IL_ASKS il_row_query_as(il_entity *, il_rejection *why, const char *table, il_page *answer, il_querying);

/* One of several operations: il_op_put("jobs", .key = il_lit("j1"), .value = job). */
typedef enum il_action { IL_GET, IL_PUT, IL_UPDATE, IL_UPSERT, IL_CLAIM, IL_DELETE } il_action;
typedef struct il_operation {
    const char *table;
    il_action what;
    union {
        il_getting get;
        il_putting put;
        il_updating update;
        il_upserting upsert;
        il_claiming claim;
        il_deleting delete;
    };
} il_operation;
#define il_op_get(name, ...) ((il_operation){.table = (name), .what = IL_GET, .get = {__VA_ARGS__}})
#define il_op_put(name, ...) ((il_operation){.table = (name), .what = IL_PUT, .put = {__VA_ARGS__}})
#define il_op_update(name, ...) ((il_operation){.table = (name), .what = IL_UPDATE, .update = {__VA_ARGS__}})
#define il_op_upsert(name, ...) ((il_operation){.table = (name), .what = IL_UPSERT, .upsert = {__VA_ARGS__}})
#define il_op_claim(name, ...) ((il_operation){.table = (name), .what = IL_CLAIM, .claim = {__VA_ARGS__}})
#define il_op_delete(name, ...) ((il_operation){.table = (name), .what = IL_DELETE, .delete = {__VA_ARGS__}})

/* Conditions: il_need_row("jobs", .key = il_lit("j1")), il_need_entity("cluster/eu-1", .states = IL_TEXTS("ready")). */
typedef struct il_requirement {
    const char *table; /* of a row */
    il_value key;
    bool absent;        /* there is to be no such row */
    const char *entity; /* or of an entity: machine/key */
    il_texts states;    /* it is in one of these; none means any */
    il_filter where;
} il_requirement;
#define il_need_row(name, ...) ((il_requirement){.table = (name), __VA_ARGS__})
#define il_need_entity(id, ...) ((il_requirement){.entity = (id), __VA_ARGS__})

/* The answer of one operation; `what` says which it is. */
typedef struct il_answer {
    il_action what;
    union {
        il_got got;
        il_written written; /* of a put and an upsert */
        il_updated updated;
        il_claimed claimed;
        il_deleted deleted;
    };
} il_answer;
typedef struct il_answers { const il_answer *at; size_t count; } il_answers;
typedef struct il_operations { const il_operation *at; size_t count; } il_operations;
typedef struct il_requirements { const il_requirement *at; size_t count; } il_requirements;
#define IL_OPERATIONS(...) IL_LIST(il_operations, const il_operation, __VA_ARGS__)
#define IL_REQUIREMENTS(...) IL_LIST(il_requirements, const il_requirement, __VA_ARGS__)
typedef struct il_transaction {
    il_operations operations;
    il_requirements requirements;
    const char *op;
} il_transaction;

/* All of the operations, in order, or none, if all of the requirements hold:
 * il_transact(e, &why, &answers, .operations = IL_OPERATIONS(...), .requirements = IL_REQUIREMENTS(...)). */
#define il_transact(entity, why, answers, ...) il_transact_as(entity, why, answers, (il_transaction){__VA_ARGS__})
IL_ASKS il_transact_as(il_entity *, il_rejection *why, il_answers *answers, il_transaction);

/* With the next transition or save, which il_row_answers then has the answers of. */
IL_ASKS il_stage(il_entity *entity, il_rejection *why, il_operation operation);
IL_ASKS il_require(il_entity *entity, il_rejection *why, il_requirement requirement);
il_answers il_row_answers(il_entity *entity);

#endif
