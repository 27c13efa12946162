/* option_words.c - refuses unknown and ambiguous options, options without their value, and flags with one. */
#include "option_words.h"

#include <string.h>

#include "nearest_word.h"

#define MAX_NAMES 128

/* Options that argp gives to every subcommand. */
static const struct argp_option standard_options[] = {
    {"help", '?', NULL, 0, NULL, 0}, {"usage", 0, NULL, 0, NULL, 0}, {"version", 'V', NULL, 0, NULL, 0}, {0}};

static bool at_end(const struct argp_option *option)
{
    return !option || (!option->name && !option->doc);
}

/* What getopt_long takes a name for: whole, or abbreviated when only one option can be meant. */
struct match {
    const struct argp_option *option, *other; /* `other` is set when the name is ambiguous */
    bool whole;
};

static void match_long(const struct argp_option *option, const char *word, size_t length, struct match *match)
{
    for (; !at_end(option) && !match->whole; option++) {
        if (!option->name || strncmp(option->name, word, length) != 0)
            continue;
        match->whole = strlen(option->name) == length;
        if (!match->whole && match->option)
            match->other = match->option;
        match->option = option;
    }
}

static const struct argp_option *match_short(const struct argp_option *option, int key)
{
    for (; !at_end(option); option++)
        if (option->name && option->key == key)
            return option;
    return NULL;
}

static int collect_names(const struct argp_option *option, const char **names, int count)
{
    for (; !at_end(option) && count < MAX_NAMES; option++)
        if (option->name)
            names[count++] = option->name;
    return count;
}

static int refuse_unknown(const struct command *command, const char *word, size_t length)
{
    char name[64];
    const char *names[MAX_NAMES], *near = NULL;
    int count = collect_names(standard_options, names, collect_names(command->options, names, 0));
    if (length < sizeof name) {
        memcpy(name, word, length);
        name[length] = '\0';
        near = nearest_word(name, names, count);
    }
    if (near)
        return tool_refuse("unknown option --%.*s; did you mean --%s?", (int)length, word, near);
    return tool_refuse("unknown option --%.*s; `tandem help %s` lists the options there are", (int)length, word,
                       command->name);
}

static int refuse_without_value(const struct argp_option *option)
{
    return tool_refuse("--%s: expected %s after it, got nothing: %s", option->name, option->arg, option->doc);
}

static int check_long(const struct command *command, const char *word, const char *next, bool *takes_next)
{
    size_t length = strcspn(word, "=");
    struct match match = {0};
    match_long(command->options, word, length, &match);
    match_long(standard_options, word, length, &match);
    if (!match.option || length == 0)
        return refuse_unknown(command, word, length);
    if (match.other && !match.whole)
        return tool_refuse("--%.*s may be --%s or --%s; write one of them", (int)length, word, match.other->name,
                           match.option->name);
    if (!match.option->arg && word[length] == '=')
        return tool_refuse("--%s: expected no value, got '%s'; write --%s alone", match.option->name, word + length + 1,
                           match.option->name);
    *takes_next = match.option->arg && word[length] != '=';
    return *takes_next && !next ? refuse_without_value(match.option) : TOOL_DONE;
}

/* Checks the letters behind a dash: flags, the last of which may have its value attached. */
static int check_short(const struct command *command, const char *word, const char *next, bool *takes_next)
{
    for (; *word; word++) {
        const struct argp_option *option = match_short(command->options, *word);
        if (!option)
            option = match_short(standard_options, *word);
        if (!option && *word == 'h')
            return tool_refuse("unknown option -h; did you mean --help?");
        if (!option)
            return tool_refuse("unknown option -%c; `tandem help %s` lists the options there are", *word,
                               command->name);
        if (!option->arg)
            continue;
        *takes_next = word[1] == '\0';
        return *takes_next && !next ? refuse_without_value(option) : TOOL_DONE;
    }
    return TOOL_DONE;
}

bool tool_takes_command(const struct command *command)
{
    return command->argument && strncmp(command->argument, "COMMAND", strlen("COMMAND")) == 0;
}

int tool_check_words(const struct command *command, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        bool takes_next = false;
        if (strcmp(word, "--") == 0)
            break;
        bool argument = word[0] != '-' || word[1] == '\0';
        if (argument && tool_takes_command(command))
            break;
        if (argument)
            continue;
        int status = word[1] == '-' ? check_long(command, word + 2, next, &takes_next)
                                    : check_short(command, word + 1, next, &takes_next);
        if (status != TOOL_DONE)
            return status;
        i += takes_next;
    }
    return TOOL_DONE;
}
