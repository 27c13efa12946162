/* must.h - for programs that scripts run: what fails ends them, with a sentence. */
#ifndef TEST_CONFORMANCE_MUST_H
#define TEST_CONFORMANCE_MUST_H

#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

static inline void *must(void *pointer, const char *what)
{
    if (pointer)
        return pointer;
    perror(what);
    exit(1);
}

static inline void must_work(td_context *context, td_status status)
{
    if (status == TD_OK)
        return;
    fprintf(stderr, "%s: %s\n", td_status_name(status), td_error(context));
    exit(1);
}

#endif
