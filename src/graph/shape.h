/* shape.h - extents of a node's value; the batch extent is symbolic until a plan is made. */
#ifndef TDI_GRAPH_SHAPE_H
#define TDI_GRAPH_SHAPE_H

#include <stdbool.h>
#include <tandem/tensor.h>

/* In a graph, dim[0] of a per-sample value is TDI_BATCH; in a plan it is the shard's number of rows. Values without a
 * batch (weights, sums over it) have plain numbers in both. */
#define TDI_BATCH (-1)

bool tdi_shape_equal(const td_shape *a, const td_shape *b);
bool tdi_shape_has_batch(const td_shape *shape);
/* The same extents with `rows` for TDI_BATCH. */
td_shape tdi_shape_at(const td_shape *shape, int64_t rows);
/* Product of extents; the batch must be resolved. */
int64_t tdi_shape_elements(const td_shape *shape);
/* Product of all extents but a leading TDI_BATCH. */
int64_t tdi_shape_per_row(const td_shape *shape);
/* NumPy's broadcasting of two shapes; false when they do not fit. */
bool tdi_shape_broadcast(const td_shape *a, const td_shape *b, td_shape *out);
/* "[batch, 28, 28, 1]" into `text`, which is returned. */
#define TDI_SHAPE_TEXT 96
const char *tdi_shape_text(const td_shape *shape, char text[TDI_SHAPE_TEXT]);

#endif
