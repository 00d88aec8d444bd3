/* What must come to nothing. */
#include "behaviour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static il_end move_with(il_entity *entity, const char *text) {
    return answer(entity, il_of(text));
}

static void loop_on(void) {
    for (volatile unsigned turns = 0;; turns++) {
    }
}

static il_end second_transition(il_entity *entity, const il_json *value) {
    (void)value;
    il_end end = move_with(entity, "the first");
    const il_rejection *no = il_refused(move_with(entity, "the second"));
    il_log(IL_INFO, "heard %s", no == NULL ? "nothing" : no->code);
    return end;
}

static il_end throws_on(il_entity *entity, const il_json *value) {
    (void)value;
    if (il_refused(move_with(entity, "moved")) == NULL) {
        fprintf(stderr, "this step is broken\n");
    }
    abort();
}

static il_end loops_on(il_entity *entity, const il_json *value) {
    (void)value;
    il_end end = move_with(entity, "moved");
    loop_on();
    return end;
}

static il_end refused_often(il_entity *entity, const il_json *value) {
    (void)value;
    for (int i = 0; i < 40; i++) {
        if (il_refused(il_transition(entity, "nowhere")) == NULL) {
            return answer_refused(entity, true, NULL);
        }
    }
    return move_with(entity, "still here");
}

static il_end loop(il_entity *entity, const il_json *value) {
    (void)entity, (void)value;
    loop_on();
    return (il_end){NULL};
}

static il_end all_memory(il_entity *entity, const il_json *value) {
    (void)entity, (void)value;
    enum { MIB = 1024 * 1024 };
    for (;;) {
        char *room = malloc(MIB);
        if (room == NULL) {
            abort();
        }
        memset(room, 1, MIB);
        il_log(IL_TRACE, "%p is kept", (void *)room);
    }
}

static il_end log_flood(il_entity *entity, const il_json *value) {
    (void)value;
    char line[1001];
    memset(line, 'x', 1000);
    line[1000] = 0;
    for (int i = 0; i < 2000; i++) {
        printf("%s\n", line);
    }
    return move_with(entity, "still here");
}

static il_end large_document(il_entity *entity, const il_json *value) {
    (void)value;
    enum { LENGTH = 307200 };
    char *text = malloc(LENGTH + 1);
    memset(text, 'x', LENGTH);
    text[LENGTH] = 0;
    il_end end = move_with(entity, text);
    return answer_refused(entity, il_refused(end) == NULL, il_refused(end));
}

const behaviour_t hostile[] = {{"second-transition", second_transition}, {"throws-on", throws_on},
    {"loops-on", loops_on}, {"refused-often", refused_often}, {"loop", loop}, {"all-memory", all_memory},
    {"log-flood", log_flood}, {"large-document", large_document}, {NULL, NULL}};
