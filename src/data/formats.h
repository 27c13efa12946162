/* formats.h - the file formats. A new one is declared here and listed in source.c. */
#ifndef TDI_DATA_FORMATS_H
#define TDI_DATA_FORMATS_H

#include "data/source.h"

extern const tdi_source_format tdi_source_idx, tdi_source_npz, tdi_source_npy, tdi_source_tfrecord, tdi_source_images,
    tdi_source_csv, tdi_source_hdf5, tdi_source_text;

#endif
