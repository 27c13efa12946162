/* stop_signals.c - the command's signal handlers; the library has none. */
#include "stop_signals.h"

#include <signal.h>
#include <stddef.h>

static td_context *volatile stop_context;
static volatile sig_atomic_t stop_number;

static const struct {
    int number;
    const char *name;
} stopping[] = {{SIGINT, "Ctrl-C"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
enum { STOPPING = sizeof stopping / sizeof *stopping };

static void on_signal(int number)
{
    stop_number = number;
    td_request_stop(stop_context);
    for (int i = 0; i < STOPPING; i++)
        signal(stopping[i].number, SIG_DFL);
}

/* A signal that was ignored when the command started (nohup, a background job) stays ignored. */
static void catch_signal(int number)
{
    struct sigaction now, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < STOPPING; i++)
        sigaddset(&action.sa_mask, stopping[i].number);
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void stop_on_signals(td_context *context)
{
    stop_context = context;
    for (int i = 0; i < STOPPING; i++)
        catch_signal(stopping[i].number);
    /* Training goes on when the reader of the progress goes away. */
    signal(SIGPIPE, SIG_IGN);
}

int stop_signal(void)
{
    return stop_number;
}

const char *stop_name(void)
{
    int i = 0;
    if (!stop_number)
        return "another process of the group";
    while (i < STOPPING - 1 && stopping[i].number != stop_number)
        i++;
    return stopping[i].name;
}

void stop_again(void)
{
    if (stop_number)
        td_request_stop(stop_context);
}
