/* Where libc ends: what it would ask of WASI is answered here, so that a step needs none.
 *
 * Lines that are printed go to the host's log: standard output as info, standard error, assert() included, as error.
 * Everything else of WASI is left undefined. Whatever needs it (a file, a clock, random numbers) is named when the
 * component is built. */
#include "internal.h"

#include <stdlib.h>

/* Of WASI preview 1; its header brings in more than these. */
enum { SUCCESS = 0, BAD_FD = 8, NOT_SEEKABLE = 70, OUT = 1, ERR = 2, CHARACTER_DEVICE = 2 };

typedef struct {
    il_level level;
    size_t used;
    char bytes[4096]; /* as much of a line as the host keeps */
} line_t;

static line_t lines[] = {{.level = IL_INFO}, {.level = IL_ERROR}};
static bool said; /* something was written to standard error */

static void end_line(line_t *line) {
    il_log(line->level, "%.*s", (int)line->used, line->bytes);
    said |= line->level == IL_ERROR;
    line->used = 0;
}

static void put(line_t *line, const char *bytes, size_t count) {
    for (; count > 0; bytes++, count--) {
        if (*bytes == '\n') {
            end_line(line);
        } else {
            if (line->used == sizeof(line->bytes)) {
                end_line(line);
            }
            line->bytes[line->used++] = *bytes;
        }
    }
}

/* Of libc: writes what its streams have buffered. There only if a stream is used at all. */
__attribute__((weak)) void __stdio_exit(void);

void il__flush(void) {
    if (__stdio_exit != NULL) {
        __stdio_exit();
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        if (lines[i].used > 0) {
            end_line(&lines[i]);
        }
    }
}

/* --- What libc imports from WASI -------------------------------------------------------------------------------- */

#define WASI(name) int32_t __imported_wasi_snapshot_preview1_##name
typedef struct { const char *bytes; size_t count; } piece_t;

WASI(fd_write)(int32_t fd, int32_t pieces, int32_t count, int32_t written) {
    if (fd != OUT && fd != ERR) {
        return BAD_FD;
    }
    size_t *total = (size_t *)written;
    *total = 0;
    for (const piece_t *piece = (const piece_t *)pieces; count > 0; piece++, count--) {
        put(&lines[fd - OUT], piece->bytes, piece->count);
        *total += piece->count;
    }
    return SUCCESS;
}

/* Standard output and error are terminals as far as libc is concerned: it writes out line by line. */
WASI(fd_fdstat_get)(int32_t fd, int32_t status) {
    if (fd != OUT && fd != ERR) {
        return BAD_FD;
    }
    memset((void *)status, 0, 24);
    *(uint8_t *)status = CHARACTER_DEVICE;
    return SUCCESS;
}

WASI(fd_seek)(int32_t fd, int64_t offset, int32_t whence, int32_t result) {
    (void)offset, (void)whence, (void)result;
    return fd == OUT || fd == ERR ? NOT_SEEKABLE : BAD_FD;
}

WASI(fd_close)(int32_t fd) {
    return fd == OUT || fd == ERR ? SUCCESS : BAD_FD;
}

/* Standard input has ended before it began. */
WASI(fd_read)(int32_t fd, int32_t pieces, int32_t count, int32_t read) {
    (void)pieces, (void)count;
    *(size_t *)read = 0;
    return fd == 0 ? SUCCESS : BAD_FD;
}

/* No variables: getenv() finds none. */
WASI(environ_sizes_get)(int32_t count, int32_t bytes) {
    *(size_t *)count = 0;
    *(size_t *)bytes = 0;
    return SUCCESS;
}

WASI(environ_get)(int32_t variables, int32_t bytes) {
    (void)variables, (void)bytes;
    return SUCCESS;
}

/* exit() ends the attempt as failed, whatever the number. */
_Noreturn void __imported_wasi_snapshot_preview1_proc_exit(int32_t code) {
    il__flush();
    il_log(IL_ERROR, "exit(%d): a step ends by returning what il_transition or an il_fail function gave it", (int)code);
    __builtin_trap();
}

/* In place of libc's, so that what it is about is in the log before the trap: assert() has said it. */
_Noreturn void abort(void) {
    il__flush();
    if (!said) {
        il_log(IL_ERROR, "the step called abort()");
    }
    __builtin_trap();
}
