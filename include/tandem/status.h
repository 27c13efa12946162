/* status.h - what a call returns, and the marks shared by every public header. */
#ifndef TANDEM_STATUS_H
#define TANDEM_STATUS_H

#include <stddef.h>

/* A struct, or a list of values, in the middle of an expression: compound literals are C only. */
#ifdef __cplusplus
#include <initializer_list>
#define TD_STRUCT_(type)    type
#define TD_LIST_(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define TD_STRUCT_(type)    (type)
#define TD_LIST_(type, ...) ((type const[]){__VA_ARGS__})
#endif

/* In C++, where the macros that name arguments cannot be, each such function takes its args struct:
 * td_dense({.x = x, .units = 10}). Stands within extern "C". */
/* clang-format off */
#ifdef __cplusplus
#define TD_BY_NAME_(result, name, args_type) } inline result name(const args_type &args) { return name##_(&args); } extern "C" {
#else
#define TD_BY_NAME_(result, name, args_type)
#endif
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TD_API __attribute__((visibility("default")))
#else
#define TD_API
#endif

/* The outcome of a call. The sentence that goes with a failure is td_error(ctx). */
typedef enum td_status {
    TD_OK = 0,
    TD_INVALID_ARGUMENT, /* an argument, a shape or an option that cannot be; nothing was changed */
    TD_UNSUPPORTED,      /* a valid wish that Tandem cannot fulfil; nothing was changed */
    TD_NO_MEMORY,
    TD_IO,         /* the operating system refused a read or a write */
    TD_BAD_FILE,   /* a file that is truncated, corrupt or hostile */
    TD_NOT_FOUND,  /* no such file, layer, weight or device */
    TD_NOT_FINITE, /* NaN or infinity where a number is needed */
    TD_STOPPED,    /* td_request_stop was called */
    TD_INTERNAL    /* a defect of Tandem: please report it */
} td_status;

/* "invalid argument", "bad file", ...; never NULL. */
TD_API const char *td_status_name(td_status status);

/* ---- names from files on a terminal ----
 *
 * A layer's name may hold anything, escape sequences too. td_summary, td_explain, progress lines, sentences and logs
 * show `?` in the place of what a terminal would obey; td_logs, JSON and files have names as they are. */

/* Puts a `?` in the place of every control character, character that changes the direction of a text, and byte that is
 * not UTF-8. Returns `text`. */
TD_API char *td_printable(char *text);
/* The columns that a terminal shows the text in: 2 for a wide character, 0 for one that combines with the one before.
 */
TD_API int td_columns(const char *text);
/* Makes `padded`, of `size` bytes, the printable text in so many columns: cut off, or followed by spaces. Returns it.
 */
TD_API char *td_pad(const char *text, int columns, char *padded, size_t size);

/* Where in the user's source a call stands; filled in by the macros. */
typedef struct td_location {
    const char *file;
    int line;
} td_location;

#define TD_HERE                                                                                                        \
    {                                                                                                                  \
        __FILE__, __LINE__                                                                                             \
    }

/* A number whose zero is meaningful and is not the default: `.momentum = TD_SET(0.0f)`. */
typedef struct td_optional {
    int is_set;
    float value;
} td_optional;

#define TD_SET(number) (TD_STRUCT_(td_optional){1, (number)})

/* A boolean whose default is Keras's, not "no". */
typedef enum td_choice { TD_DEFAULT = 0, TD_YES, TD_NO } td_choice;

/* Stands between the required arguments of an args struct and its options: a stray positional argument lands in it and
 * is refused by name. Leave it alone. */
typedef int td_guard;

#ifdef __cplusplus
}
#endif
#endif
