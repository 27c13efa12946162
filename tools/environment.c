/* environment.c - a mistyped environment variable would be ignored without a word, were it not named. */
#include "environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nearest_word.h"
#include "tool.h"

static const char *const known[] = {"TANDEM_CACHE", "TANDEM_DATA", "TANDEM_SECRET_FILE"};
enum { KNOWN = sizeof known / sizeof *known };

static bool is_known(const char *name)
{
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

static void check(const char *setting)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
    if (strncmp(name, "TANDEM_", 7) != 0 || is_known(name))
        return;
    const char *near = nearest_word(name, known, KNOWN);
    tool_say("the environment variable %s is not used: %s%s", name,
             near ? "did you mean " : "there are TANDEM_CACHE, TANDEM_DATA and TANDEM_SECRET_FILE", near ? near : "");
}

void environment_check(void)
{
    for (char *const *setting = environ; setting && *setting; setting++)
        check(*setting);
}
