/* recipe.c - recipes are parsed. */
#include "data/recipe.h"

#include <string.h>

json_t *tdi_recipe_of(const char *text, const char *format)
{
    json_t *recipe = text ? json_loads(text, 0, NULL) : NULL;
    const char *its = json_string_value(json_object_get(recipe, "format"));
    if (its && strcmp(its, format) == 0)
        return recipe;
    json_decref(recipe);
    return NULL;
}
