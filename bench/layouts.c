/* layouts.c - ResNet-50's convolutions and their gradients by oneDNN, their activations channels last (nhwc) as Tandem
 * keeps them, and in blocks of 16 channels (nChw16c), which the rest of a network would then have to keep too.
 *
 * One thread, 4 images of 224x224; of each the best of some runs counts. Filters are in the layout that the library
 * likes, and packing them is not in the times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/onednn/onednn_compat.h"

enum { IMAGES = 4, RUNS = 5, LAYOUTS = 2, WAYS = 3 };
enum { FORWARD, GRAD_INPUT, GRAD_FILTER };

typedef struct layer {
    int size, in, out, kernel, stride;
    int count; /* in the network */
} layer;

static const layer layers[] = {
    {56, 64, 64, 1, 1, 1},    {56, 64, 256, 1, 1, 4},   {56, 256, 64, 1, 1, 2},   {56, 64, 64, 3, 1, 3},
    {56, 256, 128, 1, 2, 1},  {56, 256, 512, 1, 2, 1},  {28, 128, 128, 3, 1, 4},  {28, 128, 512, 1, 1, 4},
    {28, 512, 128, 1, 1, 3},  {28, 512, 256, 1, 2, 1},  {28, 512, 1024, 1, 2, 1}, {14, 256, 256, 3, 1, 6},
    {14, 256, 1024, 1, 1, 6}, {14, 1024, 256, 1, 1, 5}, {14, 1024, 512, 1, 2, 1}, {14, 1024, 2048, 1, 2, 1},
    {7, 512, 512, 3, 1, 3},   {7, 512, 2048, 1, 1, 3},  {7, 2048, 512, 1, 1, 2},
};

/* oneDNN's names of what each way reads, reads with it, and makes: arguments of the primitive, and queries of where
 * they are described. */
typedef struct operand {
    int argument;
    dnnl_query_t query;
} operand;

static const operand operands[WAYS][WAYS] = {
    {{DNNL_ARG_SRC, dnnl_query_src_md}, {DNNL_ARG_WEIGHTS, dnnl_query_weights_md}, {DNNL_ARG_DST, dnnl_query_dst_md}},
    {{DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md},
     {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
     {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md}},
    {{DNNL_ARG_SRC, dnnl_query_src_md},
     {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md},
     {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md}},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void must(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return;
    fprintf(stderr, "oneDNN: %s: status %d\n", what, (int)status);
    exit(1);
}

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_data_type_t type;

static int out_size(const layer *l)
{
    return (l->size + 2 * (l->kernel / 2) - l->kernel) / l->stride + 1;
}

static tdi_md image(int channels, int size, int blocked)
{
    int64_t c = channels, s = size;
    dnnl_dims_t dims = {IMAGES, c, s, s};
    tdi_md md;
    if (!blocked) {
        must(tdi_md_create(&md, 4, dims, type, (dnnl_dims_t){s * s * c, 1, s * c, c}), "an image");
        return md;
    }
#if DNNL_VERSION_MAJOR >= 3
    must(dnnl_memory_desc_create_with_tag(&md, 4, dims, type, dnnl_nChw16c), "a blocked image");
#else
    must(dnnl_memory_desc_init_by_tag(&md, 4, dims, type, dnnl_nChw16c), "a blocked image");
#endif
    return md;
}

static dnnl_primitive_desc_t describe(const layer *l, int way, int blocked)
{
    int64_t pad = l->kernel / 2;
    tdi_md src = image(l->in, l->size, blocked), dst = image(l->out, out_size(l), blocked), weights;
    must(tdi_md_create(&weights, 4, (dnnl_dims_t){l->out, l->in, l->kernel, l->kernel}, type, NULL), "a filter");
    tdi_onednn_convolution c = {.src = TDI_MD_VIEW(src),
                                .weights = TDI_MD_VIEW(weights),
                                .dst = TDI_MD_VIEW(dst),
                                .strides = {l->stride, l->stride},
                                .before = {pad, pad},
                                .after = {pad, pad}};
    dnnl_primitive_desc_t forward = NULL, pd = NULL;
    must(tdi_onednn_forward(&forward, engine, &c, NULL), "a convolution");
    if (way == GRAD_INPUT)
        must(tdi_onednn_backward_data(&pd, engine, &c, NULL, forward), "a gradient of an input");
    if (way == GRAD_FILTER)
        must(tdi_onednn_backward_weights(&pd, engine, &c, NULL, forward), "a gradient of a filter");
    if (pd)
        dnnl_primitive_desc_destroy(forward);
    tdi_md_destroy(&src);
    tdi_md_destroy(&dst);
    tdi_md_destroy(&weights);
    return pd ? pd : forward;
}

/* All ones, as a float32 or a bfloat16 has them. */
static void fill(dnnl_memory_t memory, size_t bytes)
{
    void *data;
    must(dnnl_memory_get_data_handle(memory, &data), "memory");
    const float one = 1;
    const uint16_t short_one = 0x3f80;
    size_t size = type == dnnl_bf16 ? sizeof short_one : sizeof one;
    for (size_t i = 0; i < bytes / size; i++)
        memcpy((char *)data + i * size, type == dnnl_bf16 ? (const void *)&short_one : &one, size);
}

static double best_of(dnnl_primitive_t primitive, const dnnl_exec_arg_t *arguments)
{
    double best = 1e9;
    for (int run = 0; run <= RUNS; run++) {
        double began = now();
        must(dnnl_primitive_execute(primitive, stream, WAYS, arguments), "run");
        double seconds = now() - began;
        if (run && seconds < best)
            best = seconds;
    }
    return best;
}

/* Seconds. */
static double time_of(const layer *l, int way, int blocked)
{
    dnnl_primitive_desc_t pd = describe(l, way, blocked);
    dnnl_exec_arg_t arguments[WAYS];
    for (int i = 0; i < WAYS; i++) {
        tdi_md_view md = dnnl_primitive_desc_query_md(pd, operands[way][i].query, 0);
        arguments[i].arg = operands[way][i].argument;
        must(dnnl_memory_create(&arguments[i].memory, md, engine, DNNL_MEMORY_ALLOCATE), "memory");
        fill(arguments[i].memory, dnnl_memory_desc_get_size(md));
    }
    dnnl_primitive_t primitive;
    must(dnnl_primitive_create(&primitive, pd), "a primitive");
    double seconds = best_of(primitive, arguments);
    dnnl_primitive_destroy(primitive);
    for (int i = 0; i < WAYS; i++)
        dnnl_memory_destroy(arguments[i].memory);
    dnnl_primitive_desc_destroy(pd);
    return seconds;
}

static void print_rates(const layer *l, double seconds[LAYOUTS][WAYS])
{
    int out = out_size(l);
    double gflop = 2e-9 * IMAGES * out * out * l->out * l->in * l->kernel * l->kernel;
    printf("%4d  %4d -> %4d  %dx%d / %d  x%d ", l->size, l->in, l->out, l->kernel, l->kernel, l->stride, l->count);
    for (int layout = 0; layout < LAYOUTS; layout++)
        printf("%9.0f %5.0f %5.0f", gflop / seconds[layout][0], gflop / seconds[layout][1], gflop / seconds[layout][2]);
    printf("\n");
    fflush(stdout);
}

static void compare(const char *name)
{
    double total[LAYOUTS] = {0};
    printf("\n%s, GFLOP/s: channels last, then in blocks; each forward, the input's gradient, the filter's\n", name);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        double seconds[LAYOUTS][WAYS];
        for (int way = 0; way < WAYS; way++)
            for (int blocked = 0; blocked < LAYOUTS; blocked++) {
                seconds[blocked][way] = time_of(&layers[i], way, blocked);
                total[blocked] += layers[i].count * seconds[blocked][way];
            }
        print_rates(&layers[i], seconds);
    }
    printf("all of them: %.0f ms channels last, %.0f ms in blocks, %.3f\n", 1e3 * total[0], 1e3 * total[1],
           total[1] / total[0]);
}

int main(void)
{
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "no engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "no stream");
    type = dnnl_f32;
    compare("float32");
    type = dnnl_bf16;
    compare("bfloat16");
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return 0;
}
