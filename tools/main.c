/* main.c - the `tandem` command: finds the subcommand and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "nearest_word.h"
#include "options.h"

static const struct command *const commands[] = {
    &fit_command,    &evaluate_command, &predict_command, &summary_command,  &new_command,     &explain_command,
    &doctor_command, &plot_command,     &find_lr_command, &generate_command, &cluster_command, &launch_command};

#define N_COMMANDS ((int)(sizeof commands / sizeof *commands))

static void print_sentence(const char *format, va_list args)
{
    char sentence[4096];
    vsnprintf(sentence, sizeof sentence, format, args);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program_invocation_name, td_printable(sentence));
}

void tool_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_sentence(format, args);
    va_end(args);
}

int tool_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_sentence(format, args);
    va_end(args);
    return TOOL_REFUSED;
}

int tool_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_sentence(format, args);
    va_end(args);
    return TOOL_FAILED;
}

static void print_help(FILE *out)
{
    fputs("Usage: tandem COMMAND ...\n"
          "Trains Keras models on every device you have, without Python.\n"
          "\n"
          "Commands:\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       how to use a command, with examples\n"
          "\n"
          "Examples:\n"
          "\n"
          "  tandem new mlp\n"
          "  tandem fit mlp.keras --train mnist/ --epochs 2\n"
          "  tandem evaluate mlp-trained.keras --data mnist/\n"
          "  tandem help fit\n"
          "\n"
          "Exit status: 0 success; 1 the work failed; 2 wrong arguments; 130, 143 or 129 stopped\n"
          "by a signal.\n",
          out);
}

static void print_version(FILE *out, struct argp_state *state)
{
    (void)state;
    fprintf(out, "tandem %s\n", td_version());
}

static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && output.revents & POLLERR;
}

/* Fails when standard output could not be written, as on a full disk behind `tandem summary m.keras > file`. A reader
 * that closes a pipe early is no failure. The reason of an earlier line's failure is lost. */
static void close_output(void)
{
    bool now = fflush(stdout) != 0;
    if (!(now || ferror(stdout)) || reader_is_gone())
        return;
    fprintf(stderr, "tandem: cannot write to standard output: %s\n",
            now ? strerror(errno) : "some of it is missing; is the disk full?");
    _exit(TOOL_FAILED);
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *near = nearest_word(name, names, N_COMMANDS);
    if (near)
        return tool_refuse("unknown command '%s'; did you mean tandem %s?", name, near);
    return tool_refuse("unknown command '%s'; `tandem help` lists the commands there are", name);
}

int tool_check_command(const char *name)
{
    return find_command(name) || strcmp(name, "help") == 0 ? TOOL_DONE : refuse_command(name);
}

/* Runs the subcommand; argv[0] is its name. */
static int run_command(int argc, char **argv)
{
    const struct command *command = find_command(argv[0]);
    if (!command)
        return refuse_command(argv[0]);
    char full_name[32];
    snprintf(full_name, sizeof full_name, "tandem %s", command->name);
    program_invocation_name = argv[0] = full_name;
    struct options options = {0};
    int status = tool_parse(command, argc, argv, &options);
    if (status != TOOL_DONE)
        return status;
    environment_check();
    return command->run(&options);
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        print_help(stdout);
        return TOOL_DONE;
    }
    return run_command(2, (char *[]){argv[0], "--help", NULL});
}

static int is(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* Opens closed standard streams on /dev/null, lest a file takes their place and is printed into. */
static void open_standard_files(void)
{
    int opened = 0;
    while (opened >= 0 && opened <= STDERR_FILENO)
        opened = open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO)
        close(opened);
}

int main(int argc, char **argv)
{
    open_standard_files();
    program_invocation_name = "tandem";
    argp_program_version_hook = print_version;
    argp_err_exit_status = TOOL_REFUSED;
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
    setvbuf(stdout, NULL, _IOLBF, 0); /* an epoch's line appears when it ends, in a pipe too */
    atexit(close_output);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit then fails the write, with a sentence */
    if (argc < 2) {
        print_help(stderr);
        return TOOL_REFUSED;
    }
    const char *word = argv[1];
    if (is(word, "help", "--help") || is(word, "-h", "-?"))
        return help(argc - 2, argv + 2);
    if (is(word, "--version", "-V")) {
        print_version(stdout, NULL);
        return TOOL_DONE;
    }
    if (word[0] == '-')
        return tool_refuse("expected a command in front of the options, got '%s'; `tandem help` lists the commands",
                           word);
    return run_command(argc - 1, argv + 1);
}
