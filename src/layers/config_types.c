/* config_types.c - the kinds of optimizers and of schedules, found by number and by name. */
#include <string.h>

#include "layers/training.h"

const tdi_config_type *tdi_config_type_of(const tdi_config_type *types, unsigned kind)
{
    for (; types->fields; types++)
        if (types->kind == kind)
            return types;
    return NULL;
}

const tdi_config_type *tdi_config_type_find(const tdi_config_type *types, const char *name)
{
    for (; types->fields; types++)
        if (strcmp(types->class_name, name) == 0 || strcmp(types->name, name) == 0)
            return types;
    return NULL;
}
