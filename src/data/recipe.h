/* recipe.h - how a model's data was read, as JSON: kept with the model, so that it is read the same way when the model
 * predicts. Its "format" names the format that wrote it. */
#ifndef TDI_DATA_RECIPE_H
#define TDI_DATA_RECIPE_H

#include <jansson.h>

/* A recipe may have "classes", the names of the first target's classes in the order of their numbers. */

/* The recipe, when it is `format`'s; else NULL, as for a NULL text. The caller's to json_decref. */
json_t *tdi_recipe_of(const char *text, const char *format);

#endif
