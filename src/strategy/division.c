/* division.c - the same cores divided otherwise: rows among workers, or ops among the threads of fewer workers. */
#include "strategy/division.h"

#include <stdio.h>

static int cores_of(const tdi_division *division)
{
    return division->workers * division->threads;
}

static tdi_division among(const tdi_division *division, int workers, const char *why)
{
    tdi_division d = *division;
    d.shards = d.workers = workers;
    d.threads = cores_of(division) / workers;
    snprintf(d.why, sizeof d.why, "%s", why);
    return d;
}

tdi_division tdi_divide_otherwise(const tdi_division *division)
{
    return among(division, division->threads, "steps were the fastest so");
}

/* The time of a step at best, in units of what one core takes for a row: workers have rows, their threads share each.
 */
static double time_by(int cores, int workers, int64_t rows)
{
    int64_t most = (rows + workers - 1) / workers;
    return (double)most * workers / cores;
}

/* The number of workers by which a step takes the least time; of several the largest. */
static int workers_for(const tdi_division *division, int64_t rows)
{
    int cores = cores_of(division), best = 1;
    for (int workers = 2; workers <= rows && workers <= cores; workers++)
        if (cores % workers == 0 && tdi_division_nests(workers, division->groups) &&
            time_by(cores, workers, rows) <= time_by(cores, best, rows))
            best = workers;
    return best;
}

bool tdi_has_too_few(const tdi_division *division, int64_t rows)
{
    const double worth_it = 0.8;
    int cores = cores_of(division);
    return division->either && rows < division->shards && time_by(cores, workers_for(division, rows), rows) <= worth_it;
}

tdi_division tdi_divide_few(const tdi_division *division, int64_t rows)
{
    return among(division, workers_for(division, rows),
                 "there are fewer rows than cores, so threads share each of them");
}

bool tdi_divide_again(const tdi_division *division, int shards, int64_t rows, tdi_division *again)
{
    *again = *division;
    if (shards != division->shards && tdi_has_too_few(division, rows))
        *again = tdi_divide_few(division, rows);
    else if (shards != division->shards && division->either)
        *again = tdi_divide_otherwise(division);
    return again->shards == shards;
}
