/* event_file.c - events as TensorFlow's tf.summary writes them: each value is a tensor, with its plugin's name in the
 * metadata. */
#define _GNU_SOURCE
#include "files/event_file.h"

#include <errno.h>
#include <files/event.pb-c.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/size_limit.h"
#include "files/folders.h"
#include "files/image_codec.h"
#include "files/tfrecord_file.h"

enum { BUCKETS = 30 };

struct tdi_events {
    char *path;
    FILE *file;
    tdi_error error;
};

/* ---- records ---- */

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(tdi_events *events, const char *reason)
{
    if (events->error.status == TD_OK)
        tdi_fail(&events->error, TD_IO, "cannot write \"%s\": %s", events->path, reason);
}

static void write_record(tdi_events *events, const uint8_t *bytes, size_t size)
{
    uint64_t length = size;
    uint32_t checks[2] = {tdi_masked_crc(&length, sizeof length), tdi_masked_crc(bytes, size)};
    bool good = fwrite(&length, sizeof length, 1, events->file) == 1 &&
                fwrite(&checks[0], sizeof checks[0], 1, events->file) == 1 &&
                fwrite(bytes, 1, size, events->file) == size &&
                fwrite(&checks[1], sizeof checks[1], 1, events->file) == 1;
    if (!good)
        fail(events, strerror(errno));
}

static void write_event(tdi_events *events, Tandem__Event *event)
{
    if (events->error.status != TD_OK)
        return;
    event->wall_time = wall_time();
    size_t size = tandem__event__get_packed_size(event);
    uint8_t *bytes = malloc(size);
    if (!bytes) {
        fail(events, "out of memory");
        return;
    }
    tandem__event__pack(event, bytes);
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    write_record(events, bytes, size);
    tdi_size_limit_end(&limit);
    free(bytes);
}

/* ---- the file ---- */

static char *new_path(const char *folder)
{
    static atomic_int count;
    char host[HOST_NAME_MAX + 1] = "localhost", *path = NULL;
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "localhost");
    int size = asprintf(&path, "%s/events.out.tfevents.%.0f.%s.%ld.%d.v2", folder, floor(wall_time()), host,
                        (long)getpid(), atomic_fetch_add(&count, 1));
    return size < 0 ? NULL : path;
}

td_status tdi_events_create(char *folder, tdi_events **events, tdi_error *error)
{
    tdi_events *made = calloc(1, sizeof *made);
    *events = NULL;
    if (!made || !(made->path = new_path(folder))) {
        free(made);
        return tdi_no_memory(error);
    }
    int reason = tdi_make_folders(folder, 0777);
    made->file = reason ? NULL : fopen(made->path, "w+e");
    if (!made->file) {
        tdi_fail(error, TD_IO, "cannot write \"%s\": %s", made->path, strerror(reason ? reason : errno));
        tdi_events_close(made);
        return TD_IO;
    }
    Tandem__Event event = TANDEM__EVENT__INIT;
    event.what_case = TANDEM__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char[]){"brain.Event:2"};
    write_event(made, &event);
    *events = made;
    return TD_OK;
}

td_status tdi_events_reopen(const char *path, tdi_events **events, tdi_error *error)
{
    tdi_events *made = calloc(1, sizeof *made);
    *events = NULL;
    if (!made || !(made->path = strdup(path))) {
        free(made);
        return tdi_no_memory(error);
    }
    made->file = fopen(path, "r+e");
    if (made->file && fseek(made->file, 0, SEEK_END) == 0) {
        *events = made;
        return TD_OK;
    }
    td_status status = errno == ENOENT ? TD_NOT_FOUND : TD_IO;
    tdi_fail(error, status, "cannot write \"%s\": %s", path, strerror(errno));
    tdi_events_close(made);
    return status;
}

const char *tdi_events_path(const tdi_events *events)
{
    return events->path;
}

FILE *tdi_events_file(const tdi_events *events)
{
    return events->file;
}

td_status tdi_events_flush(tdi_events *events, tdi_error *error)
{
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    if (events->error.status == TD_OK && fflush(events->file) != 0)
        fail(events, strerror(errno));
    tdi_size_limit_end(&limit);
    if (events->error.status == TD_OK && tdi_is_removed(events->file))
        fail(events, "it was removed");
    if (events->error.status != TD_OK)
        return tdi_fail(error, events->error.status, "%s", events->error.message);
    return TD_OK;
}

void tdi_events_close(tdi_events *events)
{
    if (!events)
        return;
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    if (events->file)
        fclose(events->file);
    tdi_size_limit_end(&limit);
    free(events->path);
    free(events);
}

/* ---- summaries ---- */

typedef struct plugin {
    const char *name;
    Tandem__Summary__DataClass class;
    const void *content; /* NULL: none */
    size_t size;
} plugin;

static void write_summary(tdi_events *events, const char *tag, int64_t step, const plugin *of, Tandem__Tensor *tensor)
{
    Tandem__Event event = TANDEM__EVENT__INIT;
    Tandem__Summary summary = TANDEM__SUMMARY__INIT;
    Tandem__Summary__Value value = TANDEM__SUMMARY__VALUE__INIT;
    Tandem__Summary__Metadata metadata = TANDEM__SUMMARY__METADATA__INIT;
    Tandem__Summary__PluginData data = TANDEM__SUMMARY__PLUGIN_DATA__INIT;
    data.plugin_name = (char *)(uintptr_t)of->name;
    data.content = (ProtobufCBinaryData){of->size, (uint8_t *)(uintptr_t)of->content};
    metadata.plugin_data = &data;
    metadata.data_class = of->class;
    value.tag = (char *)(uintptr_t)tag;
    value.tensor = tensor;
    value.metadata = &metadata;
    summary.n_value = 1;
    summary.value = (Tandem__Summary__Value *[]){&value};
    event.step = step;
    event.what_case = TANDEM__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    write_event(events, &event);
}

/* Writes a tensor of `rank` extents, whose content the caller has filled in. */
static void write_tensor(tdi_events *events, const char *tag, int64_t step, const plugin *of, Tandem__Tensor *tensor,
                         size_t rank, const int64_t *extents)
{
    Tandem__TensorShape shape = TANDEM__TENSOR_SHAPE__INIT;
    Tandem__TensorShape__Dim dims[2] = {TANDEM__TENSOR_SHAPE__DIM__INIT, TANDEM__TENSOR_SHAPE__DIM__INIT};
    Tandem__TensorShape__Dim *list[2] = {&dims[0], &dims[1]};
    for (size_t i = 0; i < rank; i++)
        dims[i].size = extents[i];
    shape.n_dim = rank;
    shape.dim = list;
    tensor->tensor_shape = &shape;
    write_summary(events, tag, step, of, tensor);
}

static void write_string(tdi_events *events, const char *tag, int64_t step, const plugin *of, const char *text)
{
    Tandem__Tensor tensor = TANDEM__TENSOR__INIT;
    ProtobufCBinaryData string = {strlen(text), (uint8_t *)(uintptr_t)text};
    tensor.dtype = TANDEM__TENSOR_TYPE__DT_STRING;
    tensor.n_string_val = 1;
    tensor.string_val = &string;
    write_tensor(events, tag, step, of, &tensor, 0, NULL);
}

void tdi_events_scalar(tdi_events *events, const char *tag, int64_t step, double value)
{
    static const plugin scalars = {.name = "scalars", .class = TANDEM__SUMMARY__DATA_CLASS__SCALAR};
    Tandem__Tensor tensor = TANDEM__TENSOR__INIT;
    float single = (float)value;
    tensor.dtype = TANDEM__TENSOR_TYPE__DT_FLOAT;
    tensor.tensor_content = (ProtobufCBinaryData){sizeof single, (uint8_t *)&single};
    write_tensor(events, tag, step, &scalars, &tensor, 0, NULL);
}

void tdi_events_text(tdi_events *events, const char *tag, int64_t step, const char *markdown)
{
    static const plugin text = {.name = "text", .class = TANDEM__SUMMARY__DATA_CLASS__TENSOR};
    write_string(events, tag, step, &text, markdown);
}

void tdi_events_keras_model(tdi_events *events, const char *tag, const char *json)
{
    static const plugin keras = {.name = "graph_keras_model", .content = "1", .size = 1};
    write_string(events, tag, 0, &keras, json);
}

/* ---- histograms ---- */

typedef struct bucket {
    double left, right, count;
} bucket;

static bool find_range(const float *values, int64_t count, double *least, double *greatest)
{
    *least = INFINITY;
    *greatest = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            *least = fmin(*least, (double)values[i]);
            *greatest = fmax(*greatest, (double)values[i]);
        }
    return *least <= *greatest;
}

/* Fills the buckets as tensorboard/plugins/histogram/summary_v2.py does; a single value goes into the last bucket. */
static void fill_buckets(const float *values, int64_t count, bucket buckets[BUCKETS])
{
    double least, greatest;
    if (!find_range(values, count, &least, &greatest))
        return;
    double width = (greatest - least) / BUCKETS;
    for (int b = 0; b < BUCKETS; b++) {
        buckets[b].left = least + b * width;
        buckets[b].right = b + 1 < BUCKETS ? least + (b + 1) * width : greatest;
    }
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            double at = width > 0 ? floor(((double)values[i] - least) / width) : BUCKETS - 1;
            buckets[at < BUCKETS ? (int)at : BUCKETS - 1].count++;
        }
}

void tdi_events_histogram(tdi_events *events, const char *tag, int64_t step, const float *values, int64_t count)
{
    static const plugin histograms = {.name = "histograms", .class = TANDEM__SUMMARY__DATA_CLASS__TENSOR};
    Tandem__Tensor tensor = TANDEM__TENSOR__INIT;
    bucket buckets[BUCKETS] = {{0}};
    fill_buckets(values, count, buckets);
    tensor.dtype = TANDEM__TENSOR_TYPE__DT_DOUBLE;
    tensor.tensor_content = (ProtobufCBinaryData){sizeof buckets, (uint8_t *)buckets};
    write_tensor(events, tag, step, &histograms, &tensor, 2, (int64_t[]){BUCKETS, 3});
}

/* ---- images ---- */

/* The tensor is a vector of width, height and the PNGs. */
void tdi_events_images(tdi_events *events, const char *tag, int64_t step, int64_t count, int64_t height, int64_t width,
                       const uint8_t *shades)
{
    static const plugin images = {.name = "images", .class = TANDEM__SUMMARY__DATA_CLASS__BLOB_SEQUENCE};
    Tandem__Tensor tensor = TANDEM__TENSOR__INIT;
    char sizes[2][24];
    ProtobufCBinaryData *strings = calloc((size_t)count + 2, sizeof *strings);
    for (int i = 0; strings && i < 2; i++) {
        strings[i].len = (size_t)snprintf(sizes[i], sizeof sizes[i], "%lld", (long long)(i ? height : width));
        strings[i].data = (uint8_t *)sizes[i];
    }
    td_status status = strings ? TD_OK : tdi_no_memory(&events->error);
    for (int64_t i = 0; status == TD_OK && i < count; i++) {
        void *png;
        status = tdi_png_encode(&(tdi_image){height, width, 1}, shades + i * height * width, &png, &strings[i + 2].len,
                                &events->error);
        strings[i + 2].data = png;
    }
    tensor.dtype = TANDEM__TENSOR_TYPE__DT_STRING;
    tensor.n_string_val = (size_t)count + 2;
    tensor.string_val = strings;
    write_tensor(events, tag, step, &images, &tensor, 1, (int64_t[]){count + 2});
    for (int64_t i = 0; strings && i < count; i++)
        free(strings[i + 2].data);
    free(strings);
}

/* ---- hyper-parameters ---- */

static void write_session(tdi_events *events, const char *tag, const Tandem__HParamsPluginData *data)
{
    Tandem__Tensor nothing = TANDEM__TENSOR__INIT;
    float zero = 0;
    size_t size = tandem__hparams_plugin_data__get_packed_size(data);
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) {
        fail(events, "out of memory");
        return;
    }
    tandem__hparams_plugin_data__pack(data, bytes);
    nothing.dtype = TANDEM__TENSOR_TYPE__DT_FLOAT;
    nothing.tensor_content = (ProtobufCBinaryData){sizeof zero, (uint8_t *)&zero};
    write_tensor(events, tag, 0, &(plugin){.name = "hparams", .content = bytes, .size = size}, &nothing, 0, NULL);
    free(bytes);
}

static void fill_hparam(const tdi_hparam *hparam, Tandem__HParamEntry *entry, Tandem__HParamValue *value)
{
    tandem__hparam_entry__init(entry);
    tandem__hparam_value__init(value);
    entry->key = (char *)(uintptr_t)hparam->name;
    entry->value = value;
    value->kind_case = hparam->text ? TANDEM__HPARAM_VALUE__KIND_STRING_VALUE : TANDEM__HPARAM_VALUE__KIND_NUMBER_VALUE;
    if (hparam->text)
        value->string_value = (char *)(uintptr_t)hparam->text;
    else
        value->number_value = hparam->number;
}

void tdi_events_session_start(tdi_events *events, const char *group, int count, const tdi_hparam *hparams)
{
    enum { MOST = 32 };
    Tandem__HParamEntry entries[MOST], *list[MOST];
    Tandem__HParamValue values[MOST];
    Tandem__SessionStartInfo info = TANDEM__SESSION_START_INFO__INIT;
    Tandem__HParamsPluginData data = TANDEM__HPARAMS_PLUGIN_DATA__INIT;
    for (int i = 0; i < count && i < MOST; i++) {
        fill_hparam(&hparams[i], &entries[i], &values[i]);
        list[info.n_hparams++] = &entries[i];
    }
    info.hparams = list;
    info.group_name = (char *)(uintptr_t)group;
    info.start_time_secs = wall_time();
    data.data_case = TANDEM__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &info;
    write_session(events, "_hparams_/session_start_info", &data);
}

void tdi_events_session_end(tdi_events *events, bool success)
{
    Tandem__SessionEndInfo info = TANDEM__SESSION_END_INFO__INIT;
    Tandem__HParamsPluginData data = TANDEM__HPARAMS_PLUGIN_DATA__INIT;
    info.status = success ? TANDEM__SESSION_END_INFO__STATUS__SUCCESS : TANDEM__SESSION_END_INFO__STATUS__FAILURE;
    info.end_time_secs = wall_time();
    data.data_case = TANDEM__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &info;
    write_session(events, "_hparams_/session_end_info", &data);
}

/* ---- graphs ---- */

/* A node's message and the memory that it points to. */
typedef struct node_message {
    Tandem__NodeDef node;
    Tandem__NodeDef__AttrEntry shape_entry, words_entry, *entries[2];
    Tandem__AttrValue shape_value, words_value;
    Tandem__AttrValue__List list;
    Tandem__TensorShape shape, *shapes[1];
    Tandem__TensorShape__Dim dims[TD_MAX_RANK], *dim_list[TD_MAX_RANK];
} node_message;

static void fill_shape(node_message *m, const td_shape *shape)
{
    tandem__tensor_shape__init(&m->shape);
    for (int i = 0; i < shape->rank; i++) {
        tandem__tensor_shape__dim__init(&m->dims[i]);
        m->dims[i].size = shape->dim[i];
        m->dim_list[i] = &m->dims[i];
    }
    m->shape.n_dim = (size_t)shape->rank;
    m->shape.dim = m->dim_list;
    m->shapes[0] = &m->shape;
    tandem__attr_value__list__init(&m->list);
    m->list.n_shape = 1;
    m->list.shape = m->shapes;
    tandem__attr_value__init(&m->shape_value);
    m->shape_value.value_case = TANDEM__ATTR_VALUE__VALUE_LIST;
    m->shape_value.list = &m->list;
}

static void add_attr(node_message *m, Tandem__NodeDef__AttrEntry *entry, const char *key, Tandem__AttrValue *value)
{
    tandem__node_def__attr_entry__init(entry);
    entry->key = (char *)(uintptr_t)key;
    entry->value = value;
    m->entries[m->node.n_attr++] = entry;
}

static void fill_node(node_message *m, const tdi_events_node *from)
{
    tandem__node_def__init(&m->node);
    m->node.name = (char *)(uintptr_t)from->name;
    m->node.op = (char *)(uintptr_t)from->op;
    m->node.n_input = (size_t)from->n_inputs;
    m->node.input = (char **)(uintptr_t)from->inputs;
    m->node.attr = m->entries;
    fill_shape(m, &from->shape);
    add_attr(m, &m->shape_entry, "_output_shapes", &m->shape_value);
    if (!from->words)
        return;
    tandem__attr_value__init(&m->words_value);
    m->words_value.value_case = TANDEM__ATTR_VALUE__VALUE_S;
    m->words_value.s = (ProtobufCBinaryData){strlen(from->words), (uint8_t *)(uintptr_t)from->words};
    add_attr(m, &m->words_entry, "attributes", &m->words_value);
}

static void write_graph(tdi_events *events, Tandem__GraphDef *graph)
{
    Tandem__GraphDef__Versions versions = TANDEM__GRAPH_DEF__VERSIONS__INIT;
    Tandem__Event event = TANDEM__EVENT__INIT;
    versions.producer = 1;
    graph->versions = &versions;
    size_t size = tandem__graph_def__get_packed_size(graph);
    uint8_t *bytes = malloc(size);
    if (!bytes) {
        fail(events, "out of memory");
        return;
    }
    tandem__graph_def__pack(graph, bytes);
    event.what_case = TANDEM__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){size, bytes};
    write_event(events, &event);
    free(bytes);
}

void tdi_events_graph(tdi_events *events, int count, const tdi_events_node *nodes)
{
    Tandem__GraphDef graph = TANDEM__GRAPH_DEF__INIT;
    node_message *messages = calloc((size_t)count, sizeof *messages);
    Tandem__NodeDef **list = calloc((size_t)count, sizeof *list);
    if (messages && list) {
        for (int i = 0; i < count; i++) {
            fill_node(&messages[i], &nodes[i]);
            list[i] = &messages[i].node;
        }
        graph.n_node = (size_t)count;
        graph.node = list;
        write_graph(events, &graph);
    } else {
        fail(events, "out of memory");
    }
    free(messages);
    free(list);
}
