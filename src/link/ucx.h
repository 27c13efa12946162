/* ucx.h - UCX, where it is: who can use it, and for what. */
#ifndef TDI_LINK_UCX_H
#define TDI_LINK_UCX_H

#include <stdio.h>

#include "link/wire.h"

/* ucx_engine.c, in a build with UCX's headers; others call tdi_ucx_engine (wire.h). */
td_status tdi_ucx_engine_create(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error);
/* The version of the library, which is loaded; NULL: there is none that can be used. */
const char *tdi_ucx_loaded_version(tdi_error *error);

/* For `tandem doctor`: whether UCX is here, and for what it will be used. Loads UCX. */
void tdi_ucx_describe(FILE *out);

#endif
