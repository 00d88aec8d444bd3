/* Where everything that is given out lives: chunks that are freed by il_release, or with the instance.
 *
 * Each attempt has an instance of its own, so nothing has to be given back at a step's end. The first chunk is static:
 * to grow memory is among the dearest things that a short step can do. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 16, FIRST = 64 * 1024, NEXT = 256 * 1024 };

typedef struct chunk {
    struct chunk *before;
    unsigned char *bytes;
    size_t size;
    size_t used;
} chunk_t;

static _Alignas(ALIGNMENT) unsigned char first_bytes[FIRST];
static chunk_t first = {.bytes = first_bytes, .size = FIRST};
static chunk_t *chunks = &first;

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void grow(size_t bytes) {
    size_t size = bytes > NEXT ? bytes : NEXT;
    chunk_t *chunk = malloc(aligned(sizeof(chunk_t)) + size); /* which is aligned as well */
    if (chunk == NULL) {
        il__die("out of memory: a step asked for %zu bytes more than its machine's limit leaves", bytes);
    }
    *chunk = (chunk_t){chunks, (unsigned char *)chunk + aligned(sizeof(chunk_t)), size, 0};
    chunks = chunk;
}

void *il__new(size_t bytes) {
    bytes = aligned(bytes);
    if (chunks->size - chunks->used < bytes) {
        grow(bytes);
    }
    void *room = chunks->bytes + chunks->used;
    chunks->used += bytes;
    return room;
}

/* Makes the newest room longer where it is; anything else moves. */
static void *resize(void *ptr, size_t before, size_t bytes) {
    unsigned char *end = chunks->bytes + chunks->used;
    if (ptr != NULL && (unsigned char *)ptr + aligned(before) == end) {
        size_t others = chunks->used - aligned(before);
        if (aligned(bytes) <= chunks->size - others) {
            chunks->used = others + aligned(bytes);
            return ptr;
        }
    }
    void *room = il__new(bytes);
    if (ptr != NULL) {
        memcpy(room, ptr, before < bytes ? before : bytes);
    }
    return room;
}

/* --- For the host ----------------------------------------------------------------------------------------------- */

/* Every text and list that the host hands over. A zero byte behind each makes texts C's; it is no part of a list. */
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *ptr, size_t before, size_t align, size_t bytes) {
    (void)align; /* at most 8 */
    unsigned char *room = resize(ptr, ptr == NULL ? 0 : before + 1, bytes + 1);
    room[bytes] = 0;
    return room;
}

/* The bindings would free what a step's failure says, which is the instance's to end. */
__attribute__((export_name("cabi_post_run"))) void
__wasm_export_exports_step_with_everything_run_post_return(uint8_t *result) {
    (void)result;
}

/* --- For yyjson ------------------------------------------------------------------------------------------------- */

static void *json_new(void *self, size_t bytes) {
    (void)self;
    return il__new(bytes);
}

static void *json_resize(void *self, void *ptr, size_t before, size_t bytes) {
    (void)self;
    return resize(ptr, before, bytes);
}

static void json_free(void *self, void *ptr) {
    (void)self;
    (void)ptr;
}

const yyjson_alc *il__allocator(void) {
    static const yyjson_alc allocator = {json_new, json_resize, json_free, NULL};
    return &allocator;
}

/* --- For authors ------------------------------------------------------------------------------------------------ */

struct il_mark {
    chunk_t *chunk;
    size_t used;
    struct il__documents documents;
};

il_mark *il_mark_here(void) {
    struct il_mark mark = {chunks, chunks->used, il__documents_mark()};
    il_mark *kept = il__new(sizeof(mark));
    *kept = mark;
    return kept;
}

void il_release(il_mark *mark) {
    struct il_mark to = *mark;
    while (chunks != to.chunk) {
        chunk_t *before = chunks->before;
        free(chunks);
        chunks = before;
    }
    chunks->used = to.used;
    il__documents_release(to.documents);
}

char *il__format(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        il__die("printf takes no such format: %s", format);
    }
    char *text = il__new((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

const char *il_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = il__format(format, arguments);
    va_end(arguments);
    return text;
}
