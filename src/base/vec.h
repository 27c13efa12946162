/* vec.h - a growing array of any type: `tdi_vec(int) v = {0}; if (!tdi_push(&v, 3)) ...; tdi_vec_free(&v);` */
#ifndef TDI_BASE_VEC_H
#define TDI_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define tdi_vec(type)                                                                                                  \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        int count, capacity;                                                                                           \
    }

/* Room for `more` further items; false when memory is out (the array is unchanged). */
bool tdi_vec_grow(void **items, int count, int *capacity, int more, size_t item_size);

/* Appends; false when memory is out. */
#define tdi_push(vec, ...)                                                                                             \
    (tdi_vec_grow((void **)&(vec)->at, (vec)->count, &(vec)->capacity, 1, sizeof *(vec)->at)                           \
         ? ((vec)->at[(vec)->count++] = (__VA_ARGS__), true)                                                           \
         : false)

#define tdi_vec_free(vec) (free((vec)->at), (vec)->at = NULL, (vec)->count = (vec)->capacity = 0)

#endif
