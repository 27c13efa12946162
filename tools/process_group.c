/* process_group.c - starts processes and watches them.
 *
 * Each process is in a process group of its own, so that Ctrl-C at the terminal comes to the launcher alone, which
 * passes it on once: training ends after the step at the first signal, and at once at the second. The launcher has one
 * thread and blocks signals; it waits for them, for the ends of processes and for their output in one poll. */
#include "process_group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

enum { LINE = 4096 };

/* Seconds: until the others of one that failed are asked to end, for they may be about to fail alike and have a
 * sentence to say; until they are killed. */
static const double moment = 0.5, patience = 10;

struct process {
    pid_t pid;
    bool ended;
    int errors; /* the reading end of its standard error; -1: none, or at its end */
    size_t length;
    char line[LINE]; /* what has come of a line */
};

struct group {
    const struct process_spec *spec;
    struct process *processes; /* [count] */
    int started, running;
    int signals;       /* their descriptor */
    sigset_t old_mask; /* from before, as what a write without a reader does */
    void (*old_pipe)(int);
    bool asked;      /* a signal was passed on: the processes end by themselves */
    int status;      /* of the first that failed */
    double deadline; /* when those that still run get the next signal; 0: none */
    int next;        /* SIGTERM, then SIGKILL */
};

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- starting ---- */

/* Signals that were ignored when the command started (nohup, a background job) stay ignored, here and there. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static bool catch_signals(struct group *group)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        if (!is_ignored(passed_on[i]))
            sigaddset(&set, passed_on[i]);
    group->old_pipe = signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would hide how processes ended */
    return sigprocmask(SIG_BLOCK, &set, &group->old_mask) == 0 &&
           (group->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) >= 0;
}

/* The chief keeps the standard files; the others keep nothing but where their errors go. */
static bool set_files(int errors)
{
    int nothing = errors < 0 ? -1 : open("/dev/null", O_RDWR);
    if (errors < 0)
        return true;
    return dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0 &&
           close(nothing) == 0;
}

/* Else it is a command of tandem. */
static bool is_program(const char *word)
{
    return strchr(word, '/') != NULL;
}

static _Noreturn void become(const struct group *group, int i, pid_t launcher, int errors)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher || !set_files(errors))
        _exit(TOOL_FAILED);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN); /* it may write to the terminal, though it is in the background */
    signal(SIGPIPE, group->old_pipe);
    group->spec->prepare(group->spec, i);
    sigprocmask(SIG_SETMASK, &group->old_mask, NULL);
    int count = 0;
    while (group->spec->words[count])
        count++;
    char **words = calloc((size_t)count + 2, sizeof *words);
    if (words) {
        words[0] = (char[]){"tandem"};
        memcpy(words + 1, group->spec->words, (size_t)count * sizeof *words);
        if (is_program(group->spec->words[0]))
            execv(group->spec->words[0], words + 1);
        else
            execv("/proc/self/exe", words);
    }
    dprintf(STDERR_FILENO, "tandem launch: cannot start tandem: %s\n", strerror(errno));
    _exit(TOOL_FAILED);
}

static bool start(struct group *group, int i)
{
    struct process *process = &group->processes[i];
    int ends[2] = {-1, -1};
    pid_t launcher = getpid();
    if (i > 0 && pipe2(ends, O_CLOEXEC) != 0)
        return false;
    process->pid = fork();
    if (process->pid == 0)
        become(group, i, launcher, ends[1]);
    if (ends[1] >= 0)
        close(ends[1]);
    process->errors = ends[0];
    if (process->pid < 0)
        return false;
    if (process->errors >= 0)
        fcntl(process->errors, F_SETFL, O_NONBLOCK);
    group->started++;
    group->running++;
    return true;
}

/* ---- their output ---- */

static void write_line(const struct group *group, struct process *process)
{
    char text[LINE + 32];
    int length = snprintf(text, sizeof text, "worker %d: %.*s\n", (int)(process - group->processes),
                          (int)process->length, process->line);
    for (int written = 0; written < length;) {
        ssize_t count = write(STDERR_FILENO, text + written, (size_t)(length - written));
        if (count <= 0 && errno != EINTR)
            return;
        written += count > 0 ? (int)count : 0;
    }
}

static void add_byte(const struct group *group, struct process *process, char byte)
{
    if (byte != '\n')
        process->line[process->length++] = byte;
    if (byte != '\n' && process->length < sizeof process->line)
        return;
    write_line(group, process);
    process->length = 0;
}

/* Reads what is there; at the end, what is left of a line is one too. */
static void read_errors(const struct group *group, struct process *process)
{
    char bytes[4096];
    ssize_t count = read(process->errors, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; i++)
        add_byte(group, process, bytes[i]);
    if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (process->length)
        add_byte(group, process, '\n');
    close(process->errors);
    process->errors = -1;
}

/* ---- signals and ends ---- */

static void signal_all(const struct group *group, int number)
{
    for (int i = 0; i < group->started; i++)
        if (!group->processes[i].ended)
            kill(group->processes[i].pid, number);
}

/* Ctrl-Z stops all, and then the launcher, until somebody lets it go on. */
static void pass_on(struct group *group, int number)
{
    if (number == SIGTSTP) {
        signal_all(group, SIGSTOP);
        kill(getpid(), SIGSTOP);
        signal_all(group, SIGCONT);
        return;
    }
    signal_all(group, number);
    group->asked = group->asked || number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static const char *others(const struct group *group)
{
    return group->running ? "; the others are ended too" : "";
}

static void say_failure(const struct group *group, int i, int status)
{
    if (WIFSIGNALED(status))
        tool_fail("worker %d was killed by signal %d (%s)%s", i, WTERMSIG(status), strsignal(WTERMSIG(status)),
                  others(group));
    else if (group->running)
        tool_fail("worker %d ended with status %d%s", i, WEXITSTATUS(status), others(group));
}

static void end_later(struct group *group, int number, double seconds)
{
    group->next = number;
    group->deadline = now() + seconds;
}

static void end_all(struct group *group)
{
    signal_all(group, group->next);
    signal_all(group, SIGCONT); /* one that is stopped would not hear it */
    if (group->next == SIGTERM)
        end_later(group, SIGKILL, patience);
    else
        group->deadline = 0;
}

static void note_end(struct group *group, int i, int status)
{
    group->processes[i].ended = true;
    group->running--;
    if (status == 0 || group->status != 0)
        return;
    group->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (group->asked)
        return;
    say_failure(group, i, status);
    end_later(group, SIGTERM, moment);
}

static void collect_ends(struct group *group)
{
    int status;
    for (int i = 0; i < group->started; i++)
        if (!group->processes[i].ended && waitpid(group->processes[i].pid, &status, WNOHANG) > 0)
            note_end(group, i, status);
}

static void read_signals(struct group *group)
{
    struct signalfd_siginfo signal;
    while (read(group->signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo == SIGCHLD)
            collect_ends(group);
        else
            pass_on(group, (int)signal.ssi_signo);
}

/* ---- the loop ---- */

static int milliseconds_left(const struct group *group)
{
    double left = group->deadline - now();
    if (group->deadline == 0)
        return -1;
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

/* Waits for something to happen, and sees to it. */
static void wait_once(struct group *group, struct pollfd *polled)
{
    int count = 1;
    polled[0] = (struct pollfd){.fd = group->signals, .events = POLLIN};
    for (int i = 0; i < group->started; i++)
        polled[count++] = (struct pollfd){.fd = group->processes[i].errors, .events = POLLIN};
    poll(polled, (nfds_t)count, milliseconds_left(group));
    if (group->deadline != 0 && now() >= group->deadline)
        end_all(group);
    for (int i = 0; i < group->started; i++)
        if (polled[i + 1].revents)
            read_errors(group, &group->processes[i]);
    read_signals(group);
}

/* What the last ones have written before they ended. A process of theirs may hold the pipe open still: that is not
 * waited for. */
static void drain(struct group *group)
{
    for (int i = 0; i < group->started; i++) {
        struct pollfd errors = {.fd = group->processes[i].errors, .events = POLLIN};
        while (group->processes[i].errors >= 0 && poll(&errors, 1, 0) > 0)
            read_errors(group, &group->processes[i]);
        if (group->processes[i].errors >= 0)
            close(group->processes[i].errors);
    }
}

static void start_all(struct group *group)
{
    for (int i = 0; i < group->spec->count; i++)
        if (!start(group, i)) {
            group->status =
                tool_fail("process %d of %d cannot be started: %s", i + 1, group->spec->count, strerror(errno));
            end_later(group, SIGTERM, 0);
            return;
        }
}

int process_group_run(const struct process_spec *spec)
{
    struct group group = {.spec = spec, .signals = -1};
    struct pollfd *polled = calloc((size_t)spec->count + 1, sizeof *polled);
    group.processes = calloc((size_t)spec->count, sizeof *group.processes);
    if (!polled || !group.processes || !catch_signals(&group))
        group.status = tool_fail("the processes cannot be watched: %s", strerror(errno));
    else
        start_all(&group);
    while (group.running)
        wait_once(&group, polled);
    drain(&group);
    if (group.signals >= 0)
        close(group.signals);
    free(group.processes);
    free(polled);
    return group.status;
}
