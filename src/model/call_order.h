/* call_order.h - puts the calls and layers of an architecture into Keras's order. */
#ifndef TDI_MODEL_CALL_ORDER_H
#define TDI_MODEL_CALL_ORDER_H

#include "model/architecture.h"

/* Fills `sites`, each call behind those that it depends on, and `layers`, from inputs and outputs. */
td_status tdi_architecture_order(tdi_architecture *architecture, tdi_error *error);

#endif
