/* camvid.c - a small network learns to classify every pixel of a street into CamVid's 11 classes. Unlabelled pixels
 * (void) count neither in the loss nor in the metric.
 *
 *     camvid DIR [EPOCHS [FOLDER [DEVICES]]]          20 epochs, to camvid/, on all cores
 *
 * DEVICES "cpu:0,cpu:1" make two replicas.
 *
 * DIR has images in train and val, and label maps of the same names (PNG, classes 0 to 10, 11 is void) in trainannot
 * and valannot; heights and widths are multiples of 4. Each epoch ends with the mean intersection over union on val
 * (val_mean_io_u). The model goes into FOLDER, and so do its predictions for val as 000.png, 001.png, ...: class
 * numbers with a palette of CamVid's colours. */
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

enum { CLASSES = 11, VOID = 11, BATCH = 8, LONGEST = 4096 };

static const uint8_t colours[CLASSES][3] = {
    {128, 128, 128}, /* sky */
    {128, 0, 0},     /* building */
    {192, 192, 128}, /* pole */
    {128, 64, 128},  /* road */
    {60, 40, 222},   /* pavement */
    {128, 128, 0},   /* tree */
    {192, 128, 128}, /* sign */
    {64, 64, 128},   /* fence */
    {64, 0, 128},    /* car */
    {64, 64, 0},     /* pedestrian */
    {0, 128, 192},   /* cyclist */
};

/* Batch normalization is over all replicas' images, because one replica has too few. */
static td_tensor *convolution(td_tensor *x, int64_t filters, int dilation)
{
    td_tensor *y = td_conv2d(x, filters, 3, .dilation = TD_SIZE(dilation, dilation), .padding = TD_SAME,
                             .use_bias = TD_NO, .kernel_initializer = {.kind = TD_HE_NORMAL});
    return td_relu(td_batch_normalization(y, .momentum = TD_SET(0.9f), .synchronized = TD_YES));
}

/* Doubles height and width, and appends the encoder's channels of that size. */
static td_tensor *up(td_tensor *x, td_tensor *skip)
{
    return td_concatenate(TD_TENSORS(td_up_sampling2d(x, 2, .interpolation = TD_BILINEAR), skip));
}

static td_model *segmenter(td_context *ctx, td_shape image, int64_t steps, const char *devices)
{
    td_tensor *x = td_input(ctx, image);
    td_tensor *whole = convolution(x, 16, 1);
    td_tensor *half = convolution(convolution(td_max_pooling2d(whole, 2), 32, 1), 32, 1);
    td_tensor *y = convolution(convolution(td_max_pooling2d(half, 2), 64, 1), 64, 2);
    y = convolution(convolution(y, 64, 4), 64, 8);
    y = convolution(up(y, half), 32, 1);
    y = convolution(up(y, whole), 16, 1);
    td_model *model = td_model_create(x, td_conv2d(y, CLASSES, 1), .name = "camvid", .seed = 1);
    td_compile(model, .optimizer = td_adam(.schedule = td_cosine_decay(3e-3f, .decay_steps = (float)steps)),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .ignore_class = TD_SET(VOID),
               .metrics = TD_METRICS(td_metric_mean_iou(.ignore_class = TD_SET(VOID))),
               .strategy = td_mirrored(devices));
    return model;
}

static td_data *split(const char *folder, const char *name)
{
    char path[2 * LONGEST];
    snprintf(path, sizeof path, "%s/%s,%s/%sannot", folder, name, folder, name);
    return td_open(path);
}

static void most_likely(const float *logits, int64_t pixels, uint8_t *classes)
{
    for (int64_t i = 0; i < pixels; i++) {
        const float *of = logits + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (of[c] > of[best])
                best = c;
        classes[i] = (uint8_t)best;
    }
}

static int write_png(const char *folder, int64_t number, const td_shape *image, const uint8_t *classes)
{
    char path[2 * LONGEST];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)image->dim[1],
                     .height = (png_uint_32)image->dim[0],
                     .format = PNG_FORMAT_RGB_COLORMAP,
                     .colormap_entries = CLASSES};
    snprintf(path, sizeof path, "%s/%03lld.png", folder, (long long)number);
    if (png_image_write_to_file(&png, path, 0, classes, 0, colours))
        return 1;
    fprintf(stderr, "%s: %s\n", path, png.message);
    return 0;
}

/* Draws the predictions for all images of `data`, one at a time. Returns 0 on failure, with a sentence on stderr or in
 * the context. */
static int draw(td_context *ctx, td_model *model, td_data *data, const td_shape *image, const char *folder)
{
    int64_t pixels = image->dim[0] * image->dim[1];
    float *x = malloc(sizeof *x * (size_t)(pixels * image->dim[2]));
    float *logits = malloc(sizeof *logits * (size_t)(pixels * CLASSES));
    uint8_t *classes = malloc((size_t)pixels);
    int good = x && logits && classes;
    if (!good)
        fprintf(stderr, "no memory for an image and its classes\n");
    for (int64_t i = 0; good && i < td_data_samples(data); i++) {
        good = td_data_read(ctx, data, &i, 1, x, NULL) == TD_OK && td_predict_on_batch(model, 1, x, logits) == TD_OK;
        if (good) {
            most_likely(logits, pixels, classes);
            good = write_png(folder, i, image, classes);
        }
    }
    free(x);
    free(logits);
    free(classes);
    return good;
}

static int make_folder(const char *folder)
{
    if (strlen(folder) < LONGEST && (mkdir(folder, 0777) == 0 || errno == EEXIST))
        return 1;
    fprintf(stderr, "%.60s: %s\n", folder, strlen(folder) < LONGEST ? strerror(errno) : "the path is too long");
    return 0;
}

/* Trains, saves and draws. Returns 0 on failure, as `draw` does. */
static int segment(td_context *ctx, td_data *train, td_data *validation, int epochs, const char *folder,
                   const char *devices)
{
    td_shape image;
    char path[2 * LONGEST];
    int64_t steps = (td_data_samples(train) + BATCH - 1) / BATCH;
    if (td_data_x_shape(train, &image) != TD_OK || image.rank != 3 || image.dim[0] % 4 || image.dim[1] % 4) {
        fprintf(stderr, "expected images whose height and width are multiples of 4, got %lld x %lld\n",
                (long long)image.dim[0], (long long)image.dim[1]);
        return 0;
    }
    td_model *model = segmenter(ctx, image, epochs * steps, devices);
    td_fit(model, td_augment(td_cache(td_data_retain(train)), .flip = TD_FLIP_HORIZONTAL), .epochs = epochs,
           .batch_size = BATCH, .validation = td_data_retain(validation), .progress = stdout);
    snprintf(path, sizeof path, "%s/camvid.keras", folder);
    td_save(model, path);
    return !td_failed(ctx) && draw(ctx, model, validation, &image, folder);
}

int main(int argc, char **argv)
{
    int epochs = argc > 2 ? atoi(argv[2]) : 20;
    const char *folder = argc > 3 ? argv[3] : "camvid", *devices = argc > 4 ? argv[4] : NULL;
    if (argc < 2 || argc > 5 || epochs < 1 || strlen(argv[1]) >= LONGEST / 2) {
        fprintf(stderr, "usage: camvid DIR [EPOCHS [FOLDER [DEVICES]]]\n");
        return 2;
    }
    td_context *ctx = td_context_create(NULL);
    td_data *train = split(argv[1], "train"), *validation = td_cache(split(argv[1], "val"));
    const char *bad = td_data_error(train) ? td_data_error(train) : td_data_error(validation);
    if (bad)
        fprintf(stderr, "%s\n", bad);
    int good = !bad && make_folder(folder) && segment(ctx, train, validation, epochs, folder, devices);
    if (td_failed(ctx))
        fprintf(stderr, "%s\n", td_error(ctx));
    td_data_release(train);
    td_data_release(validation);
    td_context_free(ctx);
    return !good;
}
