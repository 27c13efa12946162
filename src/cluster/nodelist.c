/* nodelist.c - expands SLURM's lists of hosts: names with commas between them, in which brackets hold numbers and
 * ranges, as in rack[0-1]-node[08-11,15],login. Numbers keep their leading zeros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/parse.h"

enum { NAME = 256, MOST_HOSTS = 1 << 16 };

static const char *expand_name(const char *before, const char *rest, size_t length, tdi_hosts *hosts);

static const char *add_host(const char *name, tdi_hosts *hosts)
{
    char *copy = hosts->count < MOST_HOSTS ? strdup(name) : NULL;
    if (copy && tdi_push(hosts, copy))
        return NULL;
    free(copy);
    return hosts->count < MOST_HOSTS ? "memory ran out" : "it has too many hosts";
}

/* Expands the range "08-11" or the number "15", of `length` bytes, between what stands before and behind the brackets.
 */
static const char *expand_range(const char *before, const char *range, size_t length, const char *rest, size_t behind,
                                tdi_hosts *hosts)
{
    char first[10], name[NAME];
    int from, to;
    size_t digits = strspn(range, "0123456789");
    if (digits == 0 || digits >= sizeof first || (digits < length && range[digits] != '-'))
        return "brackets hold numbers and ranges, as [1-3,7]";
    snprintf(first, sizeof first, "%.*s", (int)digits, range);
    from = to = atoi(first);
    if (digits < length) {
        char last[10];
        size_t more = length - digits - 1;
        snprintf(last, sizeof last, "%.*s", (int)(more < sizeof last ? more : 0), range + digits + 1);
        if (!tdi_whole_number(last, &to) || to < from)
            return "a range goes from a number to a greater one, as 1-3";
    }
    for (int number = from; number <= to; number++) {
        if ((size_t)snprintf(name, sizeof name, "%s%0*d", before, (int)digits, number) >= sizeof name)
            return "a host's name is too long";
        const char *why = expand_name(name, rest, behind, hosts);
        if (why)
            return why;
    }
    return NULL;
}

/* Expands the first `length` bytes of `rest` behind a name's beginning that is expanded already. */
static const char *expand_name(const char *before, const char *rest, size_t length, tdi_hosts *hosts)
{
    char name[NAME];
    const char *open = memchr(rest, '[', length), *close = memchr(rest, ']', length);
    size_t plain = open ? (size_t)(open - rest) : length;
    if (strlen(before) + plain >= sizeof name)
        return "a host's name is too long";
    snprintf(name, sizeof name, "%s%.*s", before, (int)plain, rest);
    if (!open)
        return close || !*name ? "expected names and commas, as node[1-3,7],login" : add_host(name, hosts);
    if (!close || close < open)
        return "']' is missing";
    const char *behind = close + 1, *why = NULL;
    for (const char *range = open + 1; !why && range < behind; range += strcspn(range, ",]") + 1)
        why = expand_range(name, range, strcspn(range, ",]"), behind, length - (size_t)(behind - rest), hosts);
    return why;
}

/* The length of a list's first name: commas in brackets belong to it. */
static size_t name_length(const char *list)
{
    size_t length = 0;
    for (int depth = 0; list[length] && (depth > 0 || list[length] != ','); length++)
        depth += list[length] == '[' ? 1 : list[length] == ']' ? -1 : 0;
    return length;
}

const char *tdi_nodelist_expand(const char *list, tdi_hosts *hosts)
{
    for (;; list++) {
        size_t length = name_length(list);
        const char *why = expand_name("", list, length, hosts);
        list += length;
        if (why || !*list)
            return why;
    }
}

void tdi_hosts_free(tdi_hosts *hosts)
{
    for (int i = 0; i < hosts->count; i++)
        free(hosts->at[i]);
    tdi_vec_free(hosts);
}
