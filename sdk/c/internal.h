/* What the sources of this folder share; nothing for authors. */
#ifndef INTERLOCK_INTERNAL_H
#define INTERLOCK_INTERNAL_H

#include "bindings/step_with_everything.h"
#include "interlock.h"
#include "vendor/yyjson.h"

#include <stdarg.h>
#include <string.h>

/* The generated names, shortened. */
typedef step_with_everything_string_t text_t;
typedef interlock_step_types_rejection_t rejection_t;
typedef interlock_step_types_value_t value_t;
typedef interlock_step_types_option_json_t option_json_t;

struct il_entity {
    interlock_step_transition_borrow_entity_t handle; /* the instance ends before the handle has to */
    il_event event;
    bool over; /* a transition was accepted */
};

struct il_failed {
    bool permanent;
    const char *code;
    const char *reason;
    bool has_after;
    uint64_t after_ms;
    const il_rejection *rejection; /* what it came from, if a transition was refused */
};

/* memory.c: whatever is given out. It never gives NULL. */
void *il__new(size_t bytes);
char *il__format(const char *format, va_list arguments) IL_PRINTF(1, 0);
const yyjson_alc *il__allocator(void);

/* json.c */
struct il__documents {
    yyjson_mut_doc document;
    const struct il__root *roots;
};
struct il__documents il__documents_mark(void);
void il__documents_release(struct il__documents mark);
/* A document of the host, under the name that shape problems give it: `data`, `payload`. */
il_json *il__read(text_t text, const char *name);
/* The first problem with the shape of a document, as a rejection; NULL if there is none. */
const il_rejection *il__shape(void);
/* A value as text for the host; false, with the rejection, if it has none. NULL is JSON's null. */
bool il__write(const il_json *value, const char *subject, text_t *text, il_rejection *why);

/* step.c */
bool il__refuse(il_rejection *why, const rejection_t *rejection);
/* Before anything is asked: refuses it if a document had another shape than the step read. */
bool il__may_ask(il_rejection *why);

/* entity.c */
bool il__lend_value(const il_value *value, const char *subject, value_t *lent, il_rejection *why);
bool il__lend_mutations(il_mutations list, interlock_step_rows_list_mutation_t *lent, il_rejection *why);
step_with_everything_list_tuple2_string_string_t il__lend_pairs(il_pairs list);
bool il__lend_json(const il_json *value, const char *subject, option_json_t *lent, il_rejection *why);

/* libc.c: makes a text of any bytes, with a ? for each that is no UTF-8: the host traps for those. */
void il__mend(char *bytes, size_t count);
/* Writes out what was printed and does not end with a line break. */
void il__flush(void);
/* Ends the attempt with a trap, which the host tells with these words. */
_Noreturn void il__die(const char *format, ...) IL_PRINTF(1, 2);

/* A text of the author, as the host takes it; NULL is empty. */
static inline text_t il__lend(const char *text) {
    return (text_t){(uint8_t *)text, text == NULL ? 0 : strlen(text)};
}

/* A text of the host: memory.c puts a zero byte behind each. */
static inline const char *il__text(text_t text) {
    return text.len == 0 ? "" : (const char *)text.ptr;
}

#endif
