/* order.h - fills model->sites and model->layers from its inputs and outputs. */
#ifndef TDI_MODEL_ORDER_H
#define TDI_MODEL_ORDER_H

#include "model/model.h"

td_status tdi_model_order(td_model *model, tdi_error *error);

#endif
