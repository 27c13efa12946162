/* layer_types.c - the list of layer types. */
#include <string.h>

#include "layers/layer.h"

#define LIST_LAYER(stem) &tdi_layer_type_##stem,
const tdi_layer_type *const tdi_layer_types[] = {TDI_LAYERS(LIST_LAYER) NULL};
#undef LIST_LAYER

const tdi_layer_type *tdi_layer_type_find(const char *class_name)
{
    for (const tdi_layer_type *const *type = tdi_layer_types; *type; type++)
        if (strcmp((*type)->class_name, class_name) == 0)
            return *type;
    return NULL;
}
