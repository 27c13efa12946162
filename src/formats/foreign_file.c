/* foreign_file.c - what a file is that is no model: by its first bytes, by the members of an archive. */
#define _GNU_SOURCE
#include "formats/foreign_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "files/open_regular.h"

#define SAVE_ANEW "load it with the library that wrote it, and save the model as .keras with Keras 3"

static const char hdf5_signature[] = "\x89HDF\r\n\x1a\n";

/* The beginning of a file. */
typedef struct head {
    unsigned char bytes[512];
    size_t size;
    int64_t whole; /* the file's size */
} head;

/* ---- by the first bytes ---- */

typedef struct kind {
    size_t at, size;
    const char *bytes, *sentence;
} kind;

static const kind kinds[] = {
    {0, 26, "version https://git-lfs.gi",
     "it is a pointer of Git LFS, a text that stands for the file: fetch the file itself by `git lfs pull`"},
    {0, 6, "\x93NUMPY", "it is a NumPy array: data, not a model"},
    {4, 4, "TFL3", "it is a TensorFlow Lite model, which cannot be trained; give the Keras model that it was made of"},
    {0, 2, "\x1f\x8b", "it is compressed by gzip: unpack it first"},
    {0, 3, "BZh", "it is compressed by bzip2: unpack it first"},
    {0, 5,
     "\xfd"
     "7zXZ",
     "it is compressed by xz: unpack it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "it is compressed by zstd: unpack it first"},
    {0, 4, "7z\xbc\xaf", "it is a 7-Zip archive: unpack it first"},
    {0, 4, "Rar!", "it is a RAR archive: unpack it first"},
    {257, 5, "ustar", "it is a tar archive: unpack it first"},
    {0, 4, "GGUF", "it is a GGUF model; " SAVE_ANEW},
    {0, 8, "\x89PNG\r\n\x1a\n", "it is a PNG image"},
    {0, 3, "\xff\xd8\xff", "it is a JPEG image"},
    {0, 4, "%PDF", "it is a PDF document"},
};

static const char *by_signature(const head *h)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].at + kinds[i].size <= h->size &&
            memcmp(h->bytes + kinds[i].at, kinds[i].bytes, kinds[i].size) == 0)
            return kinds[i].sentence;
    return NULL;
}

/* Protocols 2 to 5 begin with their number; what torch.save wrote before version 1.6 does too. */
static bool is_pickle(const head *h)
{
    return h->size > 2 && h->bytes[0] == 0x80 && h->bytes[1] >= 2 && h->bytes[1] <= 5;
}

/* The length of a JSON header, then the header. */
static bool is_safetensors(const head *h)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | h->bytes[i];
    return h->size > 10 && length >= 2 && length < (uint64_t)h->whole && h->bytes[8] == '{' && h->bytes[9] == '"';
}

/* A protobuf message whose first field is the number of a version, and whose second one, ONNX's, the producer's name.
 */
static bool is_onnx(const head *h, const char *path)
{
    return h->size > 3 && h->bytes[0] == 0x08 && (h->bytes[2] == 0x12 || tdi_ends_in(path, ".onnx"));
}

static bool begins_with_word(const char *text, const char *word)
{
    return strncasecmp(text, word, strlen(word)) == 0;
}

static const char *by_text(const head *h)
{
    char text[sizeof h->bytes + 1];
    size_t first = 0;
    if (h->size > 3 && memcmp(h->bytes, "\xef\xbb\xbf", 3) == 0)
        first = 3;
    while (first < h->size && isspace(h->bytes[first]))
        first++;
    memcpy(text, h->bytes + first, h->size - first);
    text[h->size - first] = '\0';
    if (begins_with_word(text, "<!doctype") || begins_with_word(text, "<html") || begins_with_word(text, "<head"))
        return "it is a web page (HTML), as comes in a file's place when a download needs a login or a confirmation: "
               "download the file itself";
    if (begins_with_word(text, "<?xml"))
        return "it is XML, as comes with an error in a file's place: download the file itself";
    if (text[0] == '{' && (strstr(text, "\"class_name\"") || strstr(text, "\"config\"")))
        return "it is a model's architecture alone, as model.to_json() gives it, without the weights: save the whole "
               "model in Keras, model.save(\"model.keras\")";
    return NULL;
}

static bool is_plain_text(const head *h)
{
    for (size_t i = 0; i < h->size; i++)
        if (h->bytes[i] < 32 && !isspace(h->bytes[i]))
            return false;
    return true;
}

static bool is_zeros(const head *h)
{
    for (size_t i = 0; i < h->size; i++)
        if (h->bytes[i])
            return false;
    return true;
}

static bool may_be_known(const head *h)
{
    return (h->size > 3 && h->bytes[0] == 'P' && h->bytes[1] == 'K' && h->bytes[2] < 8) ||
           (h->size >= 8 && memcmp(h->bytes, hdf5_signature, 8) == 0);
}

static const char *other_model(const head *h, const char *path)
{
    if (is_pickle(h))
        return "it is a Python pickle, perhaps an old PyTorch checkpoint; " SAVE_ANEW;
    if (is_safetensors(h))
        return "it is a safetensors file, weights without a model; " SAVE_ANEW;
    if (tdi_ends_in(path, ".pb"))
        return "it is a graph of TensorFlow (protobuf); give Keras's own file: " SAVE_ANEW;
    if (is_onnx(h, path))
        return "it is an ONNX model; give the Keras model that it was made of, saved as .keras";
    return NULL;
}

static const char *name_of(const head *h, const char *path)
{
    const char *sentence = by_signature(h);
    if (!sentence)
        sentence = by_text(h);
    if (!sentence)
        sentence = other_model(h, path);
    if (!sentence && is_zeros(h))
        return "it begins with zeros alone, as a download or a copy that failed leaves it: fetch it again";
    if (!sentence)
        return is_plain_text(h) ? "it is a text, and neither a .keras file nor HDF5"
                                : "it is neither a .keras file, which is a zip archive, nor HDF5";
    return sentence;
}

/* ---- reading ---- */

/* Where a folder of TensorFlow's holds the model. */
static td_status check_folder(const char *path, tdi_error *error)
{
    char inside[4096];
    snprintf(inside, sizeof inside, "%s/saved_model.pb", path);
    if (access(inside, F_OK) == 0)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "\"%s\" is a folder in TensorFlow's SavedModel format: load it in tf_keras (Keras 2), save it "
                        "there as .h5, or as .keras with Keras 3, and give that",
                        path);
    snprintf(inside, sizeof inside, "%s/config.json", path);
    if (access(inside, F_OK) == 0)
        return tdi_fail(
            error, TD_BAD_FILE,
            "\"%s\" is a folder, with the content of a .keras file: pack it, `cd %s && zip -0 ../model.keras *`", path,
            path);
    return tdi_fail(error, TD_BAD_FILE, "cannot read \"%s\": it is a folder", path);
}

static td_status read_head(const char *path, head *h, tdi_error *error)
{
    int fd;
    TDI_TRY(tdi_regular_open(path, &fd, &h->whole, error));
    ssize_t count = pread(fd, h->bytes, sizeof h->bytes, 0);
    int reason = errno;
    close(fd);
    if (count < 0)
        return tdi_fail(error, TD_IO, "\"%s\" cannot be read: %s", path, strerror(reason));
    h->size = (size_t)count;
    return TD_OK;
}

bool tdi_is_hdf5(const char *path)
{
    head h = {0};
    return path && read_head(path, &h, NULL) == TD_OK && h.size >= 8 && memcmp(h.bytes, hdf5_signature, 8) == 0;
}

td_status tdi_foreign_check(const char *path, tdi_error *error)
{
    struct stat facts;
    head h = {0};
    if (!path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "cannot open a file: the path is NULL");
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return check_folder(path, error);
    TDI_TRY(read_head(path, &h, error));
    if (h.size == 0)
        return tdi_fail(error, TD_BAD_FILE, "\"%s\" is empty", path);
    if (may_be_known(&h))
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "\"%s\" holds no model: %s", path, name_of(&h, path));
}

/* ---- archives ---- */

static bool has_ending(const tdi_zip *zip, const char *ending, char name[160])
{
    for (int64_t i = 0; i < tdi_zip_count(zip) && i < 4096; i++) {
        const char *entry = tdi_zip_name(zip, i);
        if (entry && tdi_ends_in(entry, ending)) {
            snprintf(name, 160, "%.150s", entry);
            return true;
        }
    }
    return false;
}

td_status tdi_foreign_archive(const tdi_zip *zip, const char *path, tdi_error *error)
{
    char name[160] = "";
    if (has_ending(zip, "/config.json", name))
        return tdi_fail(
            error, TD_BAD_FILE,
            "\"%s\" holds \"%s\" where a .keras file has \"config.json\": pack what is in that folder, not the "
            "folder",
            path, name);
    if (has_ending(zip, "data.pkl", name))
        return tdi_fail(error, TD_UNSUPPORTED,
                        "\"%s\" is a checkpoint of PyTorch, which is an archive too; build the model in Keras 3, take "
                        "the weights over there, and save it as .keras",
                        path);
    if (has_ending(zip, "saved_model.pb", name))
        return tdi_fail(
            error, TD_UNSUPPORTED,
            "\"%s\" is an archive of a model in TensorFlow's SavedModel format: load it in tf_keras (Keras 2), "
            "and save it there as .h5",
            path);
    bool cut_open = tdi_zip_has(zip, "model.weights.h5") || tdi_zip_has(zip, "metadata.json");
    if (!cut_open && (has_ending(zip, ".keras", name) || has_ending(zip, ".h5", name)))
        return tdi_fail(error, TD_BAD_FILE, "\"%s\" is an archive that holds \"%s\": unpack that, and give it", path,
                        name);
    if (has_ending(zip, ".npy", name))
        return tdi_fail(error, TD_BAD_FILE, "\"%s\" is an .npz file of NumPy arrays: data, not a model", path);
    const char *first = tdi_zip_name(zip, 0);
    return tdi_fail(error, TD_NOT_FOUND,
                    "\"%s\" is an archive without \"config.json\", and so no .keras file%s%.100s%s", path,
                    first ? "; its first member is \"" : "", first ? first : "", first ? "\"" : "");
}
