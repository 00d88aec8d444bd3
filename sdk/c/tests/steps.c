/* Cases of what is C's alone: shapes, exact numbers, memory, what is printed, and how a step ends early. */
#include "interlock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static il_end saw(il_entity *entity, const il_json *value) {
    return il_transition(entity, "idle", .set = IL_MUTATIONS(il_set("data.saw", il_lit(value))));
}

/* Each reads `value` as one type and gives it back. */
static il_end reads_int(il_entity *entity, const il_json *asked) {
    return saw(entity, il_of(il_int(asked, "value")));
}

static il_end reads_uint(il_entity *entity, const il_json *asked) {
    return saw(entity, il_of(il_uint(asked, "value")));
}

static il_end reads_number(il_entity *entity, const il_json *asked) {
    return saw(entity, il_of(il_number(asked, "value")));
}

static il_end reads_text(il_entity *entity, const il_json *asked) {
    return saw(entity, il_of(il_text(asked, "value")));
}

static il_end reads_deep(il_entity *entity, const il_json *asked) {
    il_json *list = il_array(il_object(asked, "value"), "list");
    return saw(entity, il_of(il_text(il_at(list, 1), "name")));
}

static il_end reads_data(il_entity *entity, const il_json *asked) {
    (void)asked;
    return saw(entity, il_of(il_text(il_data(entity), "size")));
}

static il_end reads_desired(il_entity *entity, const il_json *asked) {
    (void)asked;
    return saw(entity, il_of(il_bool(il_desired(entity), "on")));
}

/* What was read wrongly comes before what the step makes of it. */
static il_end shape_first(il_entity *entity, const il_json *asked) {
    int64_t size = il_int(asked, "value");
    return size == 0 ? il_fail_permanent("no-size", "there is nothing to do") : saw(entity, il_of(size));
}

static il_end parses(il_entity *entity, const il_json *asked) {
    const char *problem = "none";
    il_json *value = il_parse(il_text(asked, "value"), &problem);
    return saw(entity, value == NULL ? il_of(problem) : value);
}

static il_end not_finite(il_entity *entity, const il_json *asked) {
    double zero = (double)il_length(il_get(asked, "nothing"));
    return saw(entity, il_of(1 / zero));
}

/* One value in two places, a member replaced and one taken away. */
static il_end builds(il_entity *entity, const il_json *asked) {
    (void)asked;
    il_json *part = il_new_object(), *whole = il_new_object(), *list = il_new_array();
    il_put(part, "n", 1);
    il_put(whole, "a", part);
    il_put(whole, "b", part);
    il_put(part, "n", 2); /* stands in `a`; `b` is a copy of what it was */
    il_put(whole, "gone", 1);
    il_put(whole, "gone", il_null());
    bool dropped = il_drop(whole, "gone") && !il_drop(whole, "gone");
    il_push(list, true);
    il_push(list, 1.5f);
    il_push(list, (unsigned char)255);
    il_push(list, INT64_MIN);
    il_push(list, UINT64_MAX);
    il_push(list, il_name_at(whole, 1));
    il_push(list, dropped);
    il_push(list, (bool)(il_name_at(whole, 2) == NULL));
    il_put(whole, "list", list);
    return saw(entity, whole);
}

/* 400 MiB in all, of which the memory of the machine holds a part. */
static il_end releases(il_entity *entity, const il_json *asked) {
    enum { MIB = 1024 * 1024 };
    il_json *before = il_of("before");
    char *text = malloc(MIB + 1);
    memset(text, 'x', MIB);
    text[MIB] = 0;
    for (int i = 0; i < 200; i++) {
        il_mark *mark = il_mark_here();
        il_json *list = il_new_array();
        il_push(list, text);
        if (strlen(il_text(il_at(list, 0), NULL)) != MIB || il_print(list) == NULL) {
            return il_fail_permanent("memory", "round %d has another text", i);
        }
        il_release(mark);
    }
    free(text);
    il_json *after = il_new_array();
    il_push(after, before);
    il_push(after, il_get(asked, "value"));
    return saw(entity, after);
}

static il_end prints(il_entity *entity, const il_json *asked) {
    printf("two lines\nof %s", il_text(asked, "value"));
    fprintf(stderr, "and no line break");
    puts("");
    printf("%d%%, %.2f, %lld", 100, 0.5, 1LL << 62);
    return saw(entity, il_of((int)(getenv("HOME") == NULL)));
}

/* What is no UTF-8 is a question mark in the log and in a reason; long lines are cut between characters. */
static il_end prints_bytes(il_entity *entity, const il_json *asked) {
    (void)entity, (void)asked;
    printf("latin gr\xfc\xdf" "e \xed\xa0\x80 \xf0\x9f\x98\x80 \xc0\x80 \xf0\x9f\n");
    for (int i = 0; i < 5000; i++) {
        printf("\xe4\xb8\x96");
    }
    il_log(IL_INFO, "gr\xfc\xdf" "e");
    return il_fail_permanent("bytes", "gr\xfc\xdf" "e \xf0\x9f\x98\x80");
}

static il_end asserts(il_entity *entity, const il_json *asked) {
    assert(il_length(asked) == 99);
    return saw(entity, il_null());
}

static il_end aborts(il_entity *entity, const il_json *asked) {
    (void)entity, (void)asked;
    abort();
}

static il_end exits(il_entity *entity, const il_json *asked) {
    (void)entity, (void)asked;
    exit(3);
}

static il_end overflows(il_entity *entity, const il_json *asked) {
    char room[1024];
    snprintf(room, sizeof(room), "%p", (void *)asked);
    il_end end = il_attempt(entity) > 0 ? overflows(entity, asked) : saw(entity, asked);
    il_log(IL_TRACE, "%s", room); /* so that nothing of it is left out */
    return end;
}

static il_end spent_lease(il_entity *entity, const il_json *asked) {
    (void)asked;
    il_rejection why;
    il_lease *desk = il_acquire(entity, &why, "desk");
    IL_TRY(why, desk != NULL);
    IL_TRY(why, il_lease_release(desk, &why));
    return saw(entity, il_of(il_lease_token(desk)));
}

static il_end try_case(il_entity *entity) {
    static const struct {
        const char *name;
        il_end (*run)(il_entity *entity, const il_json *asked);
    } cases[] = {
        {"int", reads_int}, {"uint", reads_uint}, {"number", reads_number}, {"text", reads_text},
        {"deep", reads_deep}, {"data", reads_data}, {"desired", reads_desired}, {"shape-first", shape_first},
        {"parse", parses}, {"not-finite", not_finite}, {"build", builds}, {"release", releases}, {"print", prints}, {"bytes", prints_bytes},
        {"assert", asserts}, {"abort", aborts}, {"exit", exits}, {"overflow", overflows}, {"spent-lease", spent_lease},
    };
    const il_json *asked = il_event_of(entity)->payload;
    const char *name = il_text(asked, "case");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return cases[i].run(entity, asked);
        }
    }
    return il_fail_permanent("unknown-case", "there is no case %s", name);
}

IL_STEPS({"try", try_case});
