/* tensor.h - symbolic tensors, shapes and element types. */
#ifndef TANDEM_TENSOR_H
#define TANDEM_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/context.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_MAX_RANK 6

typedef enum td_dtype { TD_FLOAT32 = 0, TD_FLOAT64, TD_INT32, TD_INT64, TD_UINT8, TD_BFLOAT16 } td_dtype;

/* "float32", ...; never NULL. */
TD_API const char *td_dtype_name(td_dtype dtype);
/* Bytes per element. */
TD_API size_t td_dtype_size(td_dtype dtype);

/* Extents; without the batch where a sample is meant (`TD_SHAPE(28, 28, 1)` is [batch, 28, 28, 1]). Rank 0 is a scalar.
 */
typedef struct td_shape {
    int rank;
    int64_t dim[TD_MAX_RANK];
} td_shape;

#ifdef __cplusplus
#define TD_SHAPE_RANK_(...) ((int)std::initializer_list<int64_t>{__VA_ARGS__}.size())
#else
#define TD_SHAPE_RANK_(...) ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#endif
#define TD_SHAPE(...) (TD_STRUCT_(td_shape){TD_SHAPE_RANK_(__VA_ARGS__), {__VA_ARGS__}})

/* Height and width: `.strides = TD_SIZE(2, 1)`. Zeros mean the default. */
typedef struct td_size {
    int height, width;
} td_size;

#define TD_SIZE(height, width) (TD_STRUCT_(td_size){(height), (width)})

/* Numbers around an image: `.sides = TD_SIDES(1, 0, 1, 0)`. */
typedef struct td_sides {
    int top, bottom, left, right;
} td_sides;

#define TD_SIDES(top, bottom, left, right) (TD_STRUCT_(td_sides){(top), (bottom), (left), (right)})

/* The output of a layer in a model under construction. Owned by its context. After a failed call it is a harmless
 * poison value that every builder accepts and passes on. */
typedef struct td_tensor td_tensor;

/* Extents of one sample: the batch dimension is left out. Rank 0 of a poison value. */
TD_API td_shape td_tensor_shape(const td_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
