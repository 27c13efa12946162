/* class_weights.h - parses --class-weight. */
#ifndef TOOL_CLASS_WEIGHTS_H
#define TOOL_CLASS_WEIGHTS_H

#include <stdbool.h>

#include "tool.h"

struct class_weights {
    td_class_weight *list; /* as td_fit takes it; NULL: none */
    bool balanced;
};

/* Parses "0:1,1:5" or "cat:1,dog:5", with the names that the data's recipe (NULL: none) or else the model's has for the
 * classes, or "balanced". `text` NULL: no weights. The caller calls class_weights_release. */
int class_weights_read(const char *text, const char *recipe, const char *of_model, struct class_weights *weights);
void class_weights_release(struct class_weights *weights);

#endif
