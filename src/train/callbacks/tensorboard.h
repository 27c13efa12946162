/* tensorboard.h - what the files of the TensorBoard callback share. */
#ifndef TDI_TRAIN_CALLBACKS_TENSORBOARD_H
#define TDI_TRAIN_CALLBACKS_TENSORBOARD_H

#include "files/event_file.h"
#include "train/callbacks/callbacks.h"

/* Writes the ops of a training step, under the names of their layers. */
td_status tdi_tensorboard_graph(tdi_events *events, td_model *model, tdi_error *error);
/* Writes every weight as a histogram, with `images` as an image too; then the gradients. */
td_status tdi_tensorboard_weights(tdi_events *events, td_training *training, bool images, tdi_error *error);
/* Writes the run's hyper-parameters and the table of layers. */
td_status tdi_tensorboard_hparams(tdi_events *events, const td_training *training, const char *group);

#endif
