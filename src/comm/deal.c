/* deal.c - deals the shards of the global batch to processes. */
#include "comm/deal.h"

#include <stdbool.h>
#include <stdlib.h>

/* One block of memory: the deal, then its two lists. */
typedef struct dealt {
    tdi_deal deal;
    int32_t numbers[];
} dealt;

static td_status check_member(const tdi_deal_member *member, int process, bool fixed, tdi_error *error)
{
    if (member->devices < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "process %d: expected at least 1 device, got %d", process,
                        member->devices);
    if (!fixed && (member->shards < 1 || member->shards > member->devices))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "process %d: expected 1 to %d shards, one a device at most, got %d",
                        process, member->devices, member->shards);
    return TD_OK;
}

/* Sums the members' devices and shards. */
static td_status add_up(const tdi_deal_member *members, int processes, bool fixed, tdi_deal_member *total,
                        tdi_error *error)
{
    *total = (tdi_deal_member){0};
    for (int p = 0; p < processes; p++) {
        TDI_TRY(check_member(&members[p], p, fixed, error));
        if (members[p].devices > INT32_MAX - total->devices)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "the processes have more than %d devices together", INT32_MAX);
        total->devices += members[p].devices;
        total->shards += fixed ? 0 : members[p].shards;
    }
    return TD_OK;
}

/* The first of `shards` fixed shards behind `devices` of `all` devices: rounded up, so that the first have more. */
static int fixed_before(int shards, int devices, int all)
{
    return (int)(((int64_t)shards * devices + all - 1) / all);
}

static void deal_fixed(const tdi_deal_member *members, const tdi_deal *deal, int devices, int *first, int32_t *units)
{
    for (int p = 0, before = 0; p < deal->processes; p++) {
        before += members[p].devices;
        first[p + 1] = fixed_before(deal->shards, before, devices);
    }
    for (int s = 0; s < deal->shards; s++)
        units[s + 1] = s + 1;
}

static void deal_own(const tdi_deal_member *members, const tdi_deal *deal, int *first, int32_t *units)
{
    int32_t before = 0;
    for (int p = 0; p < deal->processes; p++) {
        int mine = members[p].shards;
        first[p + 1] = first[p] + mine;
        for (int s = 1; s <= mine; s++)
            units[first[p] + s] = before + (int32_t)((int64_t)members[p].devices * s / mine);
        before += members[p].devices;
    }
}

td_status tdi_deal_create(const tdi_deal_member *members, int processes, int self, int shards, tdi_deal **deal,
                          tdi_error *error)
{
    *deal = NULL;
    tdi_deal_member total;
    if (processes < 1 || self < 0 || self >= processes || shards < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "a deal of %d shards to %d processes, of which this is number %d",
                        shards, processes, self);
    TDI_TRY(add_up(members, processes, shards > 0, &total, error));
    int count = shards ? shards : total.shards;
    dealt *made = calloc(1, sizeof *made + ((size_t)processes + (size_t)count + 2) * sizeof *made->numbers);
    if (!made)
        return tdi_no_memory(error);
    int *first = made->numbers;
    int32_t *units = made->numbers + processes + 1;
    made->deal = (tdi_deal){processes, self, count, first, units};
    if (shards)
        deal_fixed(members, &made->deal, total.devices, first, units);
    else
        deal_own(members, &made->deal, first, units);
    *deal = &made->deal;
    return TD_OK;
}

void tdi_deal_free(tdi_deal *deal)
{
    free(deal);
}

int64_t tdi_deal_row(const tdi_deal *deal, int64_t rows, int shard)
{
    return rows * deal->units[shard] / deal->units[deal->shards];
}

int tdi_deal_owner(const tdi_deal *deal, int shard)
{
    int process = 0;
    while (deal->first_shard[process + 1] <= shard)
        process++;
    return process;
}
