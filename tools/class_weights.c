/* class_weights.c - parses --class-weight: classes by number or name, each with its weight. */
#include "class_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse_number.h"

enum { NAME = 256 };

/* The number of the class of this name; -1: the recipe names none so. */
static int class_of_name(const char *recipe, const char *word)
{
    char name[NAME];
    int classes = td_recipe_class(recipe, 0, NULL, 0);
    for (int i = 0; i < classes; i++) {
        td_recipe_class(recipe, i, name, sizeof name);
        if (strcmp(name, word) == 0)
            return i;
    }
    return -1;
}

/* "cat, dog, ...", as many as fit. */
static void list_names(const char *recipe, char *text, size_t size)
{
    char name[NAME];
    int classes = td_recipe_class(recipe, 0, NULL, 0);
    size_t used = 0;
    for (int i = 0; i < classes && used < size; i++) {
        td_recipe_class(recipe, i, name, sizeof name);
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
    }
}

static int refuse_class(const char *recipe, const char *word)
{
    char names[300] = "";
    list_names(recipe, names, sizeof names);
    if (*names)
        return tool_refuse("--class-weight: there is no class '%s'; the classes are %s", word, names);
    return tool_refuse("--class-weight: expected the number of a class, as the data name none, got '%s'", word);
}

/* Parses "1:5" or "dog:5"; a name may hold colons. */
static int read_one(char *word, const char *recipe, td_class_weight *one)
{
    char *colon = strrchr(word, ':');
    double weight;
    int64_t number;
    if (!colon || !read_real(colon + 1, &weight))
        return tool_refuse("--class-weight: expected CLASS:WEIGHT and commas, as 0:1,1:5, or balanced, got '%s'", word);
    *colon = '\0';
    one->weight = (float)weight;
    one->number = class_of_name(recipe, word);
    if (one->number >= 0)
        return TOOL_DONE;
    if (!read_count(word, &number) || number > INT32_MAX)
        return refuse_class(recipe, word);
    one->number = (int)number;
    return TOOL_DONE;
}

static int read_list(char *text, const char *recipe, td_class_weight *list)
{
    int status = TOOL_DONE, count = 0;
    for (char *word; status == TOOL_DONE && (word = strsep(&text, ","));)
        status = read_one(word, recipe, &list[count++]);
    list[count] = (td_class_weight){.number = TD_CLASS_WEIGHTS_END};
    return status;
}

int class_weights_read(const char *text, const char *recipe, const char *of_model, struct class_weights *weights)
{
    *weights = (struct class_weights){.balanced = text && strcmp(text, "balanced") == 0};
    if (!text || weights->balanced)
        return TOOL_DONE;
    char *words = strdup(text);
    weights->list = malloc((strlen(text) + 2) * sizeof *weights->list);
    bool room = words && weights->list;
    int status = room ? read_list(words, td_recipe_class(recipe, 0, NULL, 0) ? recipe : of_model, weights->list)
                      : tool_fail("out of memory");
    free(words);
    return status;
}

void class_weights_release(struct class_weights *weights)
{
    free(weights->list);
    weights->list = NULL;
}
