/* input.c - how fast images come out of a TFRecord file: libjpeg alone, on one thread, the compressed images in memory
 * and its decompressor reused (the floor); and Tandem's data, with finding, checking, taking apart and converting to
 * floats, on one thread and on all cores; the same out of a cache.
 *
 *     bench_input cifar10/train-00000-of-00005.tfrecord.gz */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <jpeglib.h>

enum { MOST_IMAGES = 20000, MOST_BYTES = 1 << 20, ROUNDS = 5, PIECE = 64, MOST_THREADS = 256 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void give_up(const char *why)
{
    fprintf(stderr, "bench_input: %s\n", why);
    exit(1);
}

/* ---- libjpeg alone ---- */

static struct {
    unsigned char *bytes;
    size_t size;
} images[MOST_IMAGES];
static int count;

/* A record's data, from its JPEG image on; 0 at the end of the file. */
static size_t next_image(gzFile file, unsigned char *data, unsigned char **image)
{
    unsigned long long size;
    if (gzread(file, data, 12) != 12)
        return 0;
    memcpy(&size, data, sizeof size);
    if (size > MOST_BYTES || gzread(file, data, (unsigned)size + 4) != (int)size + 4)
        give_up("the file holds no records");
    *image = memmem(data, (size_t)size, "\xff\xd8\xff", 3);
    if (!*image)
        give_up("a record holds no JPEG image");
    return (size_t)(data + size - *image);
}

static void read_images(const char *path)
{
    static unsigned char data[MOST_BYTES + 4];
    unsigned char *image;
    gzFile file = gzopen(path, "rb");
    if (!file)
        give_up("the file cannot be opened");
    for (size_t size; count < MOST_IMAGES && (size = next_image(file, data, &image)) > 0; count++) {
        images[count].bytes = malloc(size);
        images[count].size = size;
        memcpy(images[count].bytes, image, size);
    }
    gzclose(file);
}

static void decode(struct jpeg_decompress_struct *codec, int i, unsigned char *pixels)
{
    jpeg_mem_src(codec, images[i].bytes, (unsigned long)images[i].size);
    jpeg_read_header(codec, TRUE);
    jpeg_start_decompress(codec);
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = pixels + (size_t)codec->output_scanline * codec->output_width * 3;
        jpeg_read_scanlines(codec, &row, 1);
    }
    jpeg_finish_decompress(codec);
}

static void decode_all(int threads)
{
    static unsigned char pixels[MOST_BYTES];
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr manager;
    (void)threads;
    codec.err = jpeg_std_error(&manager);
    jpeg_create_decompress(&codec);
    for (int i = 0; i < count; i++)
        decode(&codec, i, pixels);
    jpeg_destroy_decompress(&codec);
}

/* ---- Tandem's data ---- */

static td_data *data;

typedef struct share {
    int first, end;
} share;

static void *read_share(void *argument)
{
    const share *of = argument;
    td_context *context = td_context_create(NULL);
    td_shape shape;
    td_data_x_shape(data, &shape);
    float *x = malloc(PIECE * (size_t)(shape.dim[0] * shape.dim[1] * shape.dim[2]) * sizeof *x), y[PIECE];
    int64_t rows[PIECE];
    for (int at = of->first; at < of->end; at += PIECE) {
        int piece = of->end - at < PIECE ? of->end - at : PIECE;
        for (int i = 0; i < piece; i++)
            rows[i] = at + i;
        if (td_data_read(context, data, rows, piece, x, y) != TD_OK)
            give_up(td_error(context));
    }
    free(x);
    td_context_free(context);
    return NULL;
}

static void read_all(int threads)
{
    pthread_t thread[MOST_THREADS];
    share shares[MOST_THREADS];
    for (int i = 0; i < threads; i++) {
        shares[i] = (share){count * i / threads, count * (i + 1) / threads};
        pthread_create(&thread[i], NULL, read_share, &shares[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

/* ---- rates ---- */

/* Images per second, of the best round. */
static double rate(void (*work)(int threads), int threads)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begun = now();
        work(threads);
        double taken = now() - begun;
        best = taken < best ? taken : best;
    }
    return count / best;
}

static void print(const char *what, int threads, double rate, double floor)
{
    printf("%-38s %3d %12.0f %8.2f\n", what, threads, rate, rate / floor);
    fflush(stdout);
}

int main(int words, char **word)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (words != 2)
        give_up("expected a TFRecord file of JPEG images");
    cores = cores < MOST_THREADS ? cores : MOST_THREADS;
    read_images(word[1]);
    data = td_open(word[1]);
    if (td_data_error(data))
        give_up(td_data_error(data));
    printf("%-38s %3s %12s %8s\n", "", "thr", "images/s", "/ floor");
    double floor = rate(decode_all, 1);
    print("libjpeg alone", 1, floor, floor);
    print("td_open, to floats, with labels", 1, rate(read_all, 1), floor);
    print("td_open, to floats, with labels", cores, rate(read_all, cores), floor);
    data = td_cache(data);
    print("td_cache, to floats, with labels", 1, rate(read_all, 1), floor);
    td_data_release(data);
    return 0;
}
