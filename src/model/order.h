/* order.h - fills model->architecture->sites and model->architecture->layers from its inputs and outputs. */
#ifndef TDI_MODEL_ORDER_H
#define TDI_MODEL_ORDER_H

#include "model/architecture.h"

td_status tdi_architecture_order(tdi_architecture *architecture, tdi_error *error);

#endif
