/* Where libc ends: what it would ask of WASI is answered here, so that a step needs none.
 *
 * Lines that are printed go to the host's log: standard output as info, standard error, assert() included, as error.
 * Everything else of WASI is left undefined. Whatever needs it (a file, a clock, random numbers) is named when the
 * component is built. */
#include "internal.h"

#include <stdio.h>

/* Of WASI preview 1; its header brings in more than these. */
enum { SUCCESS = 0, BAD_FD = 8, NOT_SEEKABLE = 70, OUT = 1, ERR = 2, CHARACTER_DEVICE = 2 };

typedef struct {
    il_level level;
    size_t used;
    char bytes[4096]; /* as much of a line as the host keeps */
} line_t;

static line_t lines[] = {{.level = IL_INFO}, {.level = IL_ERROR}};
static bool said; /* something was written to standard error */

/* Without memory of its own: it is also said when there is none left. */
static void say(il_level level, char *bytes, size_t count) {
    il__mend(bytes, count);
    text_t text = {(uint8_t *)bytes, count};
    step_with_everything_list_tuple2_string_string_t fields = {NULL, 0};
    interlock_step_log_write(level, &text, &fields);
}

/* Says the first `count` bytes and keeps the others. */
static void end_line(line_t *line, size_t count) {
    size_t rest = line->used - count;
    line->used = 0; /* before anything can end the step, which says what is left */
    say(line->level, line->bytes, count);
    said |= line->level == IL_ERROR;
    memmove(line->bytes, line->bytes + count, rest);
    line->used = rest;
}

static void put(line_t *line, const char *bytes, size_t count) {
    for (; count > 0; bytes++, count--) {
        if (*bytes == '\n') {
            end_line(line, line->used);
            continue;
        }
        if (line->used == sizeof(line->bytes)) {
            size_t whole = line->used;
            while (whole > sizeof(line->bytes) - 4 && ((unsigned char)line->bytes[whole - 1] & 0xc0) == 0x80) {
                whole--; /* not through the middle of a character */
            }
            end_line(line, (unsigned char)line->bytes[whole - 1] >= 0xc0 ? whole - 1 : line->used);
        }
        line->bytes[line->used++] = *bytes;
    }
}

/* How long the character at this place is; 0 if there is none. */
static size_t character(const unsigned char *at, size_t left) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    if (length > left) {
        return 0;
    }
    unsigned point = length < 2 ? at[0] : at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (at[i] & 0x3f);
    }
    bool surrogate = point >= 0xd800 && point < 0xe000;
    return length > 1 && (point < least[length] || point > 0x10ffff || surrogate) ? 0 : length;
}

void il__mend(char *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        size_t length = character((unsigned char *)bytes + at, count - at);
        if (length == 0) {
            bytes[at] = '?';
            length = 1;
        }
        at += length;
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
            end_line(&lines[i], lines[i].used);
        }
    }
}

_Noreturn void il__die(const char *format, ...) {
    char text[512]; /* no memory may be left */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    il__flush();
    say(IL_ERROR, text, strlen(text));
    __builtin_trap();
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

/* What fopen() brings along beside path_open, which alone is left to be named. */
WASI(fd_prestat_get)(int32_t fd, int32_t found) {
    (void)fd, (void)found;
    return BAD_FD; /* no folder was handed in */
}

WASI(fd_prestat_dir_name)(int32_t fd, int32_t path, int32_t length) {
    (void)fd, (void)path, (void)length;
    return BAD_FD;
}

WASI(fd_fdstat_set_flags)(int32_t fd, int32_t flags) {
    (void)fd, (void)flags;
    return BAD_FD;
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
    il__die("exit(%d): a step ends by returning what il_transition or an il_fail function gave it", (int)code);
}

/* In place of libc's, so that what it is about is in the log before the trap: assert() has said it. */
_Noreturn void abort(void) {
    if (!said && lines[ERR - OUT].used == 0) {
        il__die("the step called abort()");
    }
    il__flush();
    __builtin_trap();
}
