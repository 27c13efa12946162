/* recipe.h - a source's recipe: what was found in the training data and must be the same when the model predicts.
 *
 * It is JSON. "format" names the format that wrote it; the rest is the format's own: a CSV's categories and means, the
 * classes of image folders and TFRecords, a text's characters. td_fit gives it to the model, whose file keeps it
 * (tandem.json, which Keras ignores), and a source opened with it reads in the same way. A recipe may have "classes":
 * the names of the first target's classes, in the order of their numbers. */
#ifndef TDI_DATA_RECIPE_H
#define TDI_DATA_RECIPE_H

#include <jansson.h>
#include <stdbool.h>

/* Parses a recipe. NULL when `text` is NULL or the recipe is another format's. The caller calls json_decref. */
json_t *tdi_recipe_of(const char *text, const char *format);

/* False when both are recipes of folders of images that number the classes differently. Either may be NULL. */
bool tdi_recipes_agree(const char *one, const char *other);

#endif
