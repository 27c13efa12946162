/* text.c - UTF-8 text for character models: x is `window` consecutive characters, y the character behind each of them.
 * Characters are given by their numbers in the vocabulary, the text's characters in order, which is the recipe. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/file_list.h"
#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "files/store.h"

typedef struct text_source {
    tdi_sample_reader reader;
    int64_t window;
    tdi_vec(int32_t) codes; /* [characters of all files]; code points while reading, then codes */
    int32_t *code_of;       /* [TDI_CHARACTERS]; -1: not in the vocabulary */
    int vocabulary;         /* number of codes */
} text_source;

static bool text_claims(const char *path)
{
    return tdi_names_file(path, ".txt");
}

/* ---- characters ---- */

static td_status add_characters(text_source *source, const char *path, const unsigned char *bytes, size_t size,
                                tdi_error *error)
{
    uint32_t character;
    size_t mark = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* spreadsheets and editors write it */
    for (size_t at = mark, taken; at < size; at += taken) {
        taken = (size_t)tdi_utf8_decode((const char *)bytes + at, size - at, &character);
        if (!taken)
            return tdi_fail(error, TD_BAD_FILE, "%s: no UTF-8 text: byte 0x%02x at offset %zu; convert it, as by iconv",
                            path, bytes[at], at);
        if (!tdi_push(&source->codes, (int32_t)character))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

static td_status read_file(text_source *source, const char *path, tdi_error *error)
{
    tdi_store *store;
    TDI_TRY(tdi_store_open(path, &store, error));
    size_t size = (size_t)tdi_store_size(store);
    unsigned char *bytes = malloc(size + 1);
    td_status status = bytes ? tdi_store_read(store, 0, bytes, (int64_t)size, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = add_characters(source, path, bytes, size, error);
    free(bytes);
    tdi_store_free(store);
    return status;
}

static td_status read_files(text_source *source, const char *patterns, tdi_error *error)
{
    tdi_paths paths = {0};
    td_status status = tdi_list_files(patterns, &paths, error);
    for (int i = 0; i < paths.count && status == TD_OK; i++) {
        status = read_file(source, paths.at[i], error);
        tdi_source_stamp(&source->reader.source, paths.at[i]);
    }
    tdi_paths_free(&paths);
    return status;
}

/* ---- the vocabulary ---- */

static void number_characters(text_source *source)
{
    for (int i = 0; i < source->codes.count; i++)
        source->code_of[source->codes.at[i]] = 0;
    for (int32_t character = 0; character < TDI_CHARACTERS; character++)
        if (source->code_of[character] == 0)
            source->code_of[character] = source->vocabulary++;
}

static void take_vocabulary(text_source *source, const json_t *characters)
{
    for (size_t i = 0; i < json_array_size(characters); i++) {
        json_int_t character = json_integer_value(json_array_get(characters, i));
        if (character >= 0 && character < TDI_CHARACTERS)
            source->code_of[character] = (int32_t)i;
    }
    source->vocabulary = (int)json_array_size(characters);
}

static td_status encode(text_source *source, tdi_error *error)
{
    for (int i = 0; i < source->codes.count; i++) {
        int32_t character = source->codes.at[i], code = source->code_of[character];
        if (code < 0)
            return tdi_fail(error, TD_BAD_FILE,
                            "%s: character %d, U+%04X, is none of the %d that the model was trained on",
                            source->reader.source.name, i, (unsigned)character, source->vocabulary);
        source->codes.at[i] = code;
    }
    return TD_OK;
}

static td_status write_recipe(text_source *source, tdi_error *error)
{
    json_t *characters = json_array();
    int32_t *character_of = calloc((size_t)source->vocabulary + 1, sizeof *character_of);
    for (int32_t character = 0; character_of && character < TDI_CHARACTERS; character++)
        if (source->code_of[character] >= 0)
            character_of[source->code_of[character]] = character;
    for (int i = 0; character_of && i < source->vocabulary; i++)
        json_array_append_new(characters, json_integer(character_of[i]));
    json_t *recipe =
        json_pack("{s:s, s:I, s:o}", "format", "text", "window", (json_int_t)source->window, "characters", characters);
    source->reader.source.recipe = recipe && character_of ? json_dumps(recipe, JSON_COMPACT) : NULL;
    json_decref(recipe);
    free(character_of);
    if (!source->reader.source.recipe)
        return tdi_no_memory(error);
    tdi_source_stamp_words(&source->reader.source, source->reader.source.recipe);
    return TD_OK;
}

int td_recipe_characters(const char *text, uint32_t *characters, int most)
{
    json_t *recipe = tdi_recipe_of(text, "text");
    const json_t *list = json_object_get(recipe, "characters");
    int count = (int)json_array_size(list);
    for (int i = 0; i < count && i < most; i++)
        characters[i] = (uint32_t)json_integer_value(json_array_get(list, (size_t)i));
    json_decref(recipe);
    return count;
}

/* ---- samples ---- */

static td_status text_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const text_source *source = (const text_source *)reader;
    (void)error;
    memcpy(to, source->codes.at + row * source->window + column, (size_t)source->window * sizeof *source->codes.at);
    return TD_OK;
}

static td_status make_columns(text_source *source, bool targets, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    base->samples = (source->codes.count - (targets ? 1 : 0)) / source->window;
    if (base->samples < 1)
        return tdi_fail(error, TD_BAD_FILE, "%s: %d characters make no window of %" PRId64 "%s", base->name,
                        source->codes.count, source->window, targets ? " and one more" : "");
    base->n_x = 1;
    base->n_y = targets;
    for (int i = 0; i < 1 + targets; i++)
        base->columns[i] =
            (tdi_column){.name = {i ? 'y' : 'x'}, .shape = TD_SHAPE(source->window), .dtype = TD_INT32, .scale = 1};
    return TD_OK;
}

static void text_release(tdi_source *base)
{
    text_source *source = (text_source *)base;
    tdi_vec_free(&source->codes);
    free(source->code_of);
    free(source->reader.source.recipe);
    free(source);
}

static td_status fill(text_source *source, const td_open_args *args, const json_t *recipe, tdi_error *error)
{
    int64_t remembered = json_integer_value(json_object_get(recipe, "window"));
    source->window = args->window ? args->window : remembered > 0 ? remembered : 100;
    source->code_of = malloc(TDI_CHARACTERS * sizeof *source->code_of);
    if (!source->code_of)
        return tdi_no_memory(error);
    memset(source->code_of, 0xff, TDI_CHARACTERS * sizeof *source->code_of);
    if (source->window < 1 || source->window > INT32_MAX)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_open: a window of %" PRId64 " characters", source->window);
    TDI_TRY(read_files(source, args->path, error));
    tdi_source_content(&source->reader.source, source->codes.at, (size_t)source->codes.count * sizeof(int32_t));
    if (recipe)
        take_vocabulary(source, json_object_get(recipe, "characters"));
    else
        number_characters(source);
    TDI_TRY(encode(source, error));
    TDI_TRY(make_columns(source, args->targets != TD_NO, error));
    return write_recipe(source, error);
}

static td_status text_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    text_source *source = tdi_sample_reader_create(sizeof *source, args->path, text_release, error);
    if (!source)
        return TD_NO_MEMORY;
    source->reader.read = text_read;
    json_t *recipe = tdi_recipe_of(args->recipe, "text");
    td_status status = fill(source, args, recipe, error);
    json_decref(recipe);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_text = {"files.txt", TDI_OPEN_WINDOW, text_claims, text_open,
                                           ", or give shorter texts: they are held whole, 4 bytes a character"};
