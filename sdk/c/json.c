/* Documents: reading and making values, and what is said when one has another shape than the step expects. */
#include "internal.h"

#include <math.h>
#include <stdio.h>

/* --- Where values live ------------------------------------------------------------------------------------------ */

/* A document that the host handed over; problems are named by their place in one. */
struct il__root {
    const struct il__root *before;
    const char *name;
    const il_json *value;
};

static struct il__documents all;

yyjson_mut_doc *il_document(void) {
    if (all.document.alc.malloc == NULL) {
        all.document = *yyjson_mut_doc_new(il__allocator());
    }
    return &all.document;
}

struct il__documents il__documents_mark(void) {
    il_document();
    return all;
}

void il__documents_release(struct il__documents mark) {
    all = mark;
}

/* A value that stands nowhere yet: in a container yyjson links it to its neighbour. */
static il_json *alone(il_json *value) {
    if (value == NULL) {
        il__die("a value of JSON was made of NULL");
    }
    value->next = NULL;
    return value;
}

il_json *il__read(text_t text, const char *name) {
    const char *problem = NULL;
    il_json *value = il_parse(il__text(text), &problem);
    if (value == NULL) {
        il__die("the host's document %s is no JSON: %s", name, problem);
    }
    struct il__root *root = il__new(sizeof(*root));
    *root = (struct il__root){all.roots, name, value};
    all.roots = root;
    return value;
}

/* --- What a value is -------------------------------------------------------------------------------------------- */

il_type il_type_of(const il_json *value) {
    switch (yyjson_mut_get_type((il_json *)value)) {
    case YYJSON_TYPE_NULL: return IL_NULL;
    case YYJSON_TYPE_BOOL: return IL_BOOL;
    case YYJSON_TYPE_NUM: return yyjson_mut_is_int((il_json *)value) ? IL_INTEGER : IL_NUMBER;
    case YYJSON_TYPE_STR: return IL_TEXT;
    case YYJSON_TYPE_ARR: return IL_ARRAY;
    case YYJSON_TYPE_OBJ: return IL_OBJECT;
    default: return IL_NONE;
    }
}

il_json *il_get(const il_json *object, const char *key) {
    return yyjson_mut_obj_get((il_json *)object, key);
}

il_json *il_at(const il_json *array, size_t index) {
    return yyjson_mut_arr_get((il_json *)array, index);
}

size_t il_length(const il_json *value) {
    il_type type = il_type_of(value);
    return type == IL_ARRAY || type == IL_OBJECT ? yyjson_mut_get_len((il_json *)value) : 0;
}

const char *il_name_at(const il_json *object, size_t index) {
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with((il_json *)object);
    yyjson_mut_val *key = yyjson_mut_obj_iter_next(&members);
    for (; key != NULL && index > 0; index--) {
        key = yyjson_mut_obj_iter_next(&members);
    }
    return yyjson_mut_get_str(key);
}

/* --- Shapes ----------------------------------------------------------------------------------------------------- */

enum { DEPTH = 130, PATH = 256, SHOWN = 80 };

/* The first problem, in room of its own: il_release may take what it is about. */
static struct {
    bool found;
    char code[24];
    char subject[PATH];
    char expected[SHOWN];
    char got[SHOWN];
    il_rejection rejection;
} shape;

/* Writes the path of `wanted` below `value` behind what `path` has; false, with `path` as it was, if it is not there. */
static bool path_to(const il_json *value, const il_json *wanted, char *path, size_t length, int depth) {
    if (value == wanted) {
        return true;
    }
    size_t index, count;
    il_json *key, *item;
    if (depth == 0) {
        return false;
    }
    if (il_type_of(value) == IL_OBJECT) {
        yyjson_mut_obj_foreach((il_json *)value, index, count, key, item) {
            int more = snprintf(path + length, PATH - length, ".%s", yyjson_mut_get_str(key));
            size_t end = length + (size_t)more < PATH ? length + (size_t)more : PATH - 1;
            if (path_to(item, wanted, path, end, depth - 1)) {
                return true;
            }
        }
    } else if (il_type_of(value) == IL_ARRAY) {
        yyjson_mut_arr_foreach((il_json *)value, index, count, item) {
            int more = snprintf(path + length, PATH - length, "[%zu]", index);
            size_t end = length + (size_t)more < PATH ? length + (size_t)more : PATH - 1;
            if (path_to(item, wanted, path, end, depth - 1)) {
                return true;
            }
        }
    }
    path[length] = 0;
    return false;
}

static void name_place(const il_json *value, const char *key) {
    const char *document = "data";
    snprintf(shape.subject, PATH, "a value");
    for (const struct il__root *root = all.roots; root != NULL; root = root->before) {
        char path[PATH];
        int length = snprintf(path, PATH, "%s", root->name);
        if (value != NULL && path_to(root->value, value, path, (size_t)length < PATH ? (size_t)length : 0, DEPTH)) {
            document = root->name;
            memcpy(shape.subject, path, PATH);
            break;
        }
    }
    /* `row j1` is the document of a row: the code says only what sort of document it is. */
    int word = (int)strcspn(document, " ");
    snprintf(shape.code, sizeof(shape.code), "%.*s-shape", word > 16 ? 16 : word, document);
    if (key != NULL) {
        size_t length = strlen(shape.subject);
        snprintf(shape.subject + length, PATH - length, ".%s", key);
    }
}

static void show(const il_json *value, char *room) {
    static const char *const sorts[] = {"nothing", "null", "a bool", "an integer", "a number", "a text", "a list", "an object"};
    il_type type = il_type_of(value);
    const char *text = type == IL_ARRAY || type == IL_OBJECT || type == IL_NONE ? NULL : il_print(value);
    if (text != NULL && strlen(text) < SHOWN) {
        snprintf(room, SHOWN, "%s", text);
    } else {
        snprintf(room, SHOWN, "%s", sorts[type]);
    }
}

static il_json *member(const il_json *value, const char *key) {
    return key == NULL ? (il_json *)value : il_get(value, key);
}

static void misshapen(const il_json *value, const char *key, const char *expected) {
    if (shape.found) {
        return;
    }
    shape.found = true;
    bool no_object = key != NULL && il_type_of(value) != IL_OBJECT;
    name_place(value, no_object ? NULL : key);
    if (no_object) {
        snprintf(shape.expected, SHOWN, "an object with the member %s", key);
    } else {
        snprintf(shape.expected, SHOWN, "%s", expected);
    }
    show(no_object ? value : member(value, key), shape.got);
    shape.rejection = (il_rejection){
        .kind = IL_INVALID,
        .code = shape.code,
        .subject = shape.subject,
        .expected = shape.expected,
        .got = shape.got,
    };
}

const il_rejection *il__shape(void) {
    return shape.found ? &shape.rejection : NULL;
}

bool il_shape_ok(void) {
    return !shape.found;
}

int64_t il_int(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (yyjson_mut_is_sint(found)) {
        return yyjson_mut_get_sint(found);
    }
    if (yyjson_mut_is_uint(found) && yyjson_mut_get_uint(found) <= INT64_MAX) {
        return (int64_t)yyjson_mut_get_uint(found);
    }
    misshapen(value, key, "an integer of at most 63 bits and a sign");
    return 0;
}

uint64_t il_uint(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (yyjson_mut_is_uint(found) || yyjson_mut_get_sint(found) > 0) {
        return yyjson_mut_get_uint(found);
    }
    misshapen(value, key, "an integer from 0, of at most 64 bits");
    return 0;
}

double il_number(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (yyjson_mut_is_real(found)) {
        return yyjson_mut_get_real(found);
    }
    if (yyjson_mut_is_int(found)) {
        bool negative = yyjson_mut_is_sint(found);
        double number = negative ? (double)yyjson_mut_get_sint(found) : (double)yyjson_mut_get_uint(found);
        double past = negative ? 0x1p63 : 0x1p64;
        if (fabs(number) < past) {
            bool exact = negative ? (int64_t)number == yyjson_mut_get_sint(found)
                                  : (uint64_t)number == yyjson_mut_get_uint(found);
            if (exact) {
                return number;
            }
        } else if (negative && yyjson_mut_get_sint(found) == INT64_MIN) {
            return number;
        }
        misshapen(value, key, "a number that a double has exactly");
        return 0;
    }
    misshapen(value, key, "a number");
    return 0;
}

bool il_bool(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (!yyjson_mut_is_bool(found)) {
        misshapen(value, key, "true or false");
    }
    return yyjson_mut_get_bool(found);
}

const char *il_text(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    const char *text = yyjson_mut_get_str(found);
    if (text == NULL || strlen(text) != yyjson_mut_get_len(found)) {
        misshapen(value, key, "a text without zero bytes");
        return "";
    }
    return text;
}

il_json *il_array(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (!yyjson_mut_is_arr(found)) {
        misshapen(value, key, "a list");
        return il_new_array();
    }
    return found;
}

il_json *il_object(const il_json *value, const char *key) {
    il_json *found = member(value, key);
    if (!yyjson_mut_is_obj(found)) {
        misshapen(value, key, "an object");
        return il_new_object();
    }
    return found;
}

/* --- Making ----------------------------------------------------------------------------------------------------- */

il_json *il_new_object(void) {
    return alone(yyjson_mut_obj(il_document()));
}

il_json *il_new_array(void) {
    return alone(yyjson_mut_arr(il_document()));
}

il_json *il_null(void) {
    return alone(yyjson_mut_null(il_document()));
}

il_json *il_of_int(int64_t value) {
    return value >= 0 ? il_of_uint((uint64_t)value) : alone(yyjson_mut_sint(il_document(), value));
}

il_json *il_of_uint(uint64_t value) {
    return alone(yyjson_mut_uint(il_document(), value));
}

il_json *il_of_number(double value) {
    return alone(yyjson_mut_real(il_document(), value));
}

il_json *il_of_bool(bool value) {
    return alone(yyjson_mut_bool(il_document(), value));
}

il_json *il_of_text(const char *text) {
    return alone(yyjson_mut_strcpy(il_document(), text));
}

il_json *il_of_json(const il_json *value) {
    return value == NULL ? il_null() : (il_json *)value;
}

il_json *il_copy(const il_json *value) {
    return alone(yyjson_mut_val_mut_copy(il_document(), (il_json *)value));
}

/* yyjson links a container's values to each other, so one value stands in one place. */
static il_json *placed(il_json *value) {
    return value->next == NULL ? value : il_copy(value);
}

void il_put_json(il_json *object, const char *key, il_json *value) {
    if (!yyjson_mut_obj_put(object, il_of_text(key), placed(value))) {
        misshapen(object, NULL, "an object to put a member into");
    }
}

void il_push_json(il_json *array, il_json *value) {
    if (!yyjson_mut_arr_append(array, placed(value))) {
        misshapen(array, NULL, "a list to add an item to");
    }
}

bool il_drop(il_json *object, const char *key) {
    return yyjson_mut_obj_remove_key(object, key) != NULL;
}

/* --- Text ------------------------------------------------------------------------------------------------------- */

il_json *il_parse(const char *text, const char **problem) {
    yyjson_read_err error;
    yyjson_doc *read = yyjson_read_opts((char *)text, strlen(text), YYJSON_READ_BIGNUM_AS_RAW, NULL, &error);
    if (read == NULL) {
        if (problem != NULL) {
            *problem = il_format("%s at byte %zu", error.msg, error.pos);
        }
        return NULL;
    }
    il_json *value = alone(yyjson_val_mut_copy(il_document(), yyjson_doc_get_root(read)));
    yyjson_val *each = yyjson_doc_get_root(read);
    for (size_t left = yyjson_doc_get_val_count(read); left > 0; left--, each++) {
        if (yyjson_is_raw(each)) {
            if (problem != NULL) {
                *problem = il_format("expected numbers of at most 64 bits, got %s", yyjson_get_raw(each));
            }
            value = NULL;
            break;
        }
    }
    yyjson_doc_free(read);
    return value;
}

static const char *print(const il_json *value, size_t *length, const char **problem) {
    yyjson_write_err error;
    char *text = yyjson_mut_val_write_opts(value, YYJSON_WRITE_NOFLAG, il__allocator(), length, &error);
    *problem = error.msg;
    return text;
}

const char *il_print(const il_json *value) {
    size_t length;
    const char *problem;
    return value == NULL ? "null" : print(value, &length, &problem);
}

bool il__write(const il_json *value, const char *subject, text_t *text, il_rejection *why) {
    if (value == NULL) {
        *text = il__lend("null");
        return true;
    }
    const char *problem;
    size_t length;
    const char *printed = print(value, &length, &problem);
    if (printed != NULL) {
        *text = (text_t){(uint8_t *)printed, length};
        return true;
    }
    if (why != NULL) {
        *why = (il_rejection){
            .kind = IL_INVALID,
            .code = "json",
            .subject = subject,
            .expected = "a value that JSON can hold",
            .got = problem,
        };
    }
    return false;
}
