/* generators.h - samples that the program makes itself.
 *
 *     static td_status next(void *user, void *const *x, void *const *y)
 *     {
 *         return sensor_read(user, x[0], y[0]) ? TD_OK : TD_STOPPED;
 *     }
 *
 *     td_data *data = td_generator(TD_SHAPE(16), .next = next, .user = sensor);
 *     td_fit(model, data, .steps_per_epoch = 100);
 *
 * A model of several inputs or outputs has them behind the first: x[1] is of .more_x's first shape, y[1] of .more_y's.
 * Weights of the losses stand behind the targets.
 *
 * The functions are called from Tandem's threads, ahead of the devices. */
#ifndef TANDEM_GENERATORS_H
#define TANDEM_GENERATORS_H

#include <tandem/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_generator_args {
    td_location at;
    td_shape x_shape; /* of one sample */
    td_guard guard;
    td_dtype x_dtype;               /* TD_FLOAT32 */
    td_shape y_shape;               /* rank 0: a number */
    td_dtype y_dtype;               /* TD_FLOAT32 */
    td_choice targets;              /* yes, the default: every sample has a y */
    float scale;                    /* x is multiplied by this; 0: 1 */
    const td_column *more_x;        /* TD_COLUMNS(...): inputs behind the first, copied; NULL: none */
    const td_column *more_y;        /* targets behind the first */
    const td_column *sample_weight; /* weights of the losses (data.h): one for all outputs, or one for each target; a
                                     * function writes them behind the targets, y[n] with n targets; NULL: none */
    void *user;                     /* passed to each function */

    /* Either: writes sample number `sample`, whichever is asked for: input i to x[i], target o to y[o], each packed, in
     * its dtype; x[i] or y[o] is NULL where it is not wanted, y is NULL without targets. Several threads call it at
     * once. `samples` says how many there are. */
    td_status (*read)(void *user, int64_t sample, void *const *x, void *const *y);

    /* Or: writes the next sample of a stream, all of it. TD_STOPPED at the end of it. One thread calls it at a time. */
    td_status (*next)(void *user, void *const *x, void *const *y);
    /* Begins the stream again, before each pass over it. NULL: it cannot be; a later pass goes on where it is. */
    td_status (*restart)(void *user);

    /* How many: needed with `read`. Of a stream, 0: not known; td_fit then needs steps_per_epoch, or runs through the
     * stream once to count it, when it can be restarted. Validation, td_evaluate and td_predict go to its end, or take
     * their `steps`. */
    int64_t samples;
    void (*release)(void *user); /* when the data is released; NULL: nothing is to do */
} td_generator_args;

/* A status other than TD_OK that a function returns ends the call that uses the data with it. A stream is passed over
 * in its own order, or shuffled by td_fit's .shuffle_buffer; it serves one td_fit at a time, and not td_data_read. Of
 * an epoch that is resumed the samples before are taken and left. Poison, never NULL, when an argument is wrong. */
TD_API td_data *td_generator_(const td_generator_args *args);
#ifndef __cplusplus
#define td_generator(...) td_generator_(&(td_generator_args){.at = TD_HERE, .x_shape = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_generator, td_generator_args)

#ifdef __cplusplus
}
#endif
#endif
