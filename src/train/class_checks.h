/* class_checks.h - holds the classes that data name against those of a model and of other data. */
#ifndef TDI_TRAIN_CLASS_CHECKS_H
#define TDI_TRAIN_CLASS_CHECKS_H

#include "data/source.h"
#include "model/model.h"

/* TD_INVALID_ARGUMENT naming the data's classes when they are more than the model's first output tells apart, so that
 * this is known before the first step. Where targets hold a class for each pixel it is left to the step. */
td_status tdi_check_classes(const td_model *model, const tdi_source *source, tdi_error *error);

/* Logs a warning when folders of images are fewer classes than the model's first output tells apart. */
void tdi_warn_of_few_classes(const td_model *model, const tdi_source *source);

/* TD_INVALID_ARGUMENT when both name classes, and number them differently. */
td_status tdi_check_same_classes(const tdi_source *train, const tdi_source *validation, tdi_error *error);

#endif
