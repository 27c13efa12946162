/* recipe.c - parses recipes. */
#include "data/recipe.h"

#include <stdio.h>
#include <string.h>
#include <tandem/data.h>

json_t *tdi_recipe_of(const char *text, const char *format)
{
    json_t *recipe = text ? json_loads(text, 0, NULL) : NULL;
    const char *its = json_string_value(json_object_get(recipe, "format"));
    if (its && strcmp(its, format) == 0)
        return recipe;
    json_decref(recipe);
    return NULL;
}

bool tdi_recipes_agree(const char *one, const char *other)
{
    json_t *a = tdi_recipe_of(one, "images"), *b = tdi_recipe_of(other, "images");
    bool agree = !a || !b || json_equal(json_object_get(a, "classes"), json_object_get(b, "classes"));
    json_decref(a);
    json_decref(b);
    return agree;
}

int td_recipe_class(const char *text, int number, char *name, size_t size)
{
    json_t *recipe = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *classes = json_object_get(recipe, "classes");
    int count = (int)json_array_size(classes);
    const char *found = number >= 0 ? json_string_value(json_array_get(classes, (size_t)number)) : NULL;
    if (name && size)
        snprintf(name, size, "%s", found ? found : "");
    json_decref(recipe);
    return count;
}
