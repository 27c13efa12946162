/* resave.c - for keras_files.py: `resave IN.keras OUT.keras [SAMPLES X P]` reads a model and writes it again; also
 * predicts the raw floats of the file X into the file P. `resave IN.keras IN.weights.h5 OUT.weights.h5`: the weights of
 * the one in the other's layers, written alone. */
#include "support/floats.h"

static void show(void *user, td_log_level level, const char *line)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static void predict(td_context *context, td_model *model, int64_t samples, const char *from, const char *to)
{
    td_shape in, out;
    must_work(context, td_input_shape(model, 0, &in));
    must_work(context, td_output_shape(model, 0, &out));
    size_t count = (size_t)samples * elements(&out);
    float *x = read_floats(from, (size_t)samples * elements(&in)), *p = must(malloc(count * sizeof *p), to);
    must_work(context, td_predict(model, td_arrays(samples, x, in), p, count));
    write_floats(to, p, count);
    free(x);
    free(p);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4 && argc != 6)
        return fprintf(stderr, "usage: resave IN.keras OUT.keras [SAMPLES X P] or resave IN.keras WEIGHTS OUT\n"), 2;
    td_context *context = must(td_context_create(&(td_context_options){.log = show}), "context");
    td_model *model = td_load(context, argv[1]);
    must_work(context, td_error_status(context));
    if (argc == 4) {
        must_work(context, td_load_weights(model, argv[2]));
        must_work(context, td_save_weights(model, argv[3]));
    } else {
        must_work(context, td_save(model, argv[2]));
    }
    if (argc == 6)
        predict(context, model, atoll(argv[3]), argv[4], argv[5]);
    td_context_free(context);
    return 0;
}
