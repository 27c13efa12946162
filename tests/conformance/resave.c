/* resave.c - for keras_files.py: `resave IN.keras OUT.keras [SAMPLES X P]` reads a model and writes it again; also
 * predicts the raw floats of the file X into the file P. */
#include <stdlib.h>
#include <tandem/tandem.h>

static void show(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static size_t elements(const td_shape *shape)
{
    size_t product = 1;
    for (int i = 0; i < shape->rank; i++)
        product *= (size_t)shape->dim[i];
    return product;
}

static float *read_floats(const char *path, size_t count)
{
    float *values = malloc((count + 1) * sizeof *values);
    FILE *file = fopen(path, "rb");
    size_t got = file && values ? fread(values, sizeof *values, count + 1, file) : 0;
    if (file)
        fclose(file);
    if (got == count)
        return values;
    fprintf(stderr, "%s does not hold %zu floats\n", path, count);
    free(values);
    return NULL;
}

static int write_floats(const char *path, const float *values, size_t count)
{
    FILE *file = fopen(path, "wb");
    return file && fwrite(values, sizeof *values, count, file) == count && fclose(file) == 0 ? 0 : 1;
}

static int predict(td_model *model, int64_t samples, const char *from, const char *to)
{
    td_shape in, out;
    if (td_input_shape(model, 0, &in) != TD_OK || td_output_shape(model, 0, &out) != TD_OK)
        return 1;
    size_t count = (size_t)samples * elements(&out);
    float *x = read_floats(from, (size_t)samples * elements(&in)), *p = malloc(count * sizeof *p);
    int failed =
        !x || !p || td_predict(model, td_arrays(samples, x, in), p, count) != TD_OK || write_floats(to, p, count);
    free(x);
    free(p);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 6) {
        fprintf(stderr, "usage: resave IN.keras OUT.keras [SAMPLES X P]\n");
        return 2;
    }
    td_context *context = td_context_create(&(td_context_options){.log = show});
    td_model *model = context ? td_load(context, argv[1]) : NULL;
    int failed =
        !model || td_save(model, argv[2]) != TD_OK || (argc == 6 && predict(model, atoll(argv[3]), argv[4], argv[5]));
    if (failed && context)
        fprintf(stderr, "%s\n", td_error(context));
    td_context_free(context);
    return failed;
}
