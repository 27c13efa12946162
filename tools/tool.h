/* tool.h - what the files of the `tandem` command share: the subcommands, and how they end. */
#ifndef TOOL_H
#define TOOL_H

#include <argp.h>
#include <tandem/tandem.h>

/* Exit statuses. After a signal: 128 + its number. */
enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_REFUSED = 2 };

struct options;

struct command {
    const char *name;                          /* "fit" */
    const char *argument;                      /* what stands after the options, "MODEL.keras"; NULL: nothing */
    const char *summary;                       /* a line for `tandem help` */
    const char *help;                          /* for argp: what and why, \v, worked examples */
    const struct argp_option *options;         /* NULL: none */
    int (*run)(const struct options *options); /* returns the exit status */
};

extern const struct command fit_command, evaluate_command, predict_command, summary_command, new_command,
    explain_command, doctor_command, plot_command, find_lr_command, generate_command;

/* Print "tandem fit: " and the sentence on stderr, and return TOOL_REFUSED: the arguments are wrong; or TOOL_FAILED:
 * the work failed. */
__attribute__((format(printf, 1, 2))) int tool_refuse(const char *format, ...);
__attribute__((format(printf, 1, 2))) int tool_fail(const char *format, ...);

#endif
