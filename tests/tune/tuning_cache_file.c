/* tuning_cache_file.c - choices.json: what is kept comes back, other processes' entries stay, and whatever stands at
 * its path, it never fails a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "files/scratch.h"
#include "tune/tuning_cache_file.h"

static int warnings, infos;

static void count_line(void *user, td_log_level level, const char *line)
{
    (void)user, (void)line;
    *(level == TD_LOG_WARNING ? &warnings : &infos) += 1;
}

static td_context *fresh_context(void)
{
    warnings = infos = 0;
    td_context *context = td_context_create(&(td_context_options){.log = count_line});
    assert_non_null(context);
    return context;
}

static tdi_tuning_cache *cache_of(td_context *context)
{
    tdi_tuning_cache *cache = tdi_tuning_cache_of(context);
    assert_non_null(cache);
    return cache;
}

static const char *const names[] = {"quick", "slow"};

static void keep(td_context *context, const char *machine, const char *key, int chosen)
{
    tdi_tuning_cache *cache = cache_of(context);
    tdi_tuned tuned = {.machine = machine,
                       .key = key,
                       .count = 2,
                       .chosen = chosen,
                       .candidates = {{names[0], 1.5}, {names[1], 2.25}},
                       .measured = true,
                       .used = true};
    assert_non_null(tdi_tuning_cache_put(cache, &tuned));
    cache->changed = true;
    tdi_tuning_cache_save(context);
}

static tdi_tuned question(const char *machine, const char *key, int count)
{
    return (tdi_tuned){.machine = machine, .key = key, .count = count, .candidates = {{names[0], 0}, {names[1], 0}}};
}

static const tdi_tuned *find_on(td_context *context, const char *machine, const char *key, int count)
{
    tdi_tuned asked = question(machine, key, count);
    return tdi_tuning_cache_find(cache_of(context), &asked);
}

static int chosen(td_context *context, const char *machine, const char *key)
{
    const tdi_tuned *tuned = find_on(context, machine, key, 2);
    return tuned ? tuned->chosen : -1;
}

static void use_folder(const char *name)
{
    setenv("TANDEM_CACHE", scratch_path(name), 1);
}

static void test_comes_back(void **state)
{
    (void)state;
    use_folder("");
    td_context *one = fresh_context();
    keep(one, "here", "a", 1);
    keep(one, "here", "b", 0);
    assert_int_equal(infos + warnings, 0);
    td_context *two = fresh_context();
    assert_int_equal(chosen(two, "here", "a"), 1);
    assert_int_equal(chosen(two, "here", "b"), 0);
    assert_int_equal(chosen(two, "elsewhere", "a"), -1);
    assert_null(find_on(two, "here", "a", 1)); /* other candidates: another question */
    keep(one, "here", "c", 1);
    keep(two, "elsewhere", "a", 0);
    keep(two, "here", "a", 0);
    td_context *three = fresh_context();
    assert_int_equal(chosen(three, "here", "a"), 0);
    assert_int_equal(chosen(three, "here", "c"), 1);
    assert_int_equal(chosen(three, "elsewhere", "a"), 0);
    assert_float_equal(find_on(three, "here", "c", 2)->candidates[1].us, 2.25, 0);
    assert_int_equal(scratch_count(), 1);
    td_context_free(one);
    td_context_free(two);
    td_context_free(three);
}

static tdi_tuned measured(const char *key, int chosen, bool unsure)
{
    return (tdi_tuned){.machine = "here",
                       .key = key,
                       .count = 2,
                       .chosen = chosen,
                       .candidates = {{names[0], 1.5}, {names[1], 2.25}},
                       .measured = true,
                       .unsure = unsure,
                       .used = true};
}

static const tdi_tuned *record(td_context *context, int chosen, bool unsure)
{
    tdi_tuned tuned = measured("hurried", chosen, unsure);
    const tdi_tuned *recorded = tdi_tuning_cache_record(cache_of(context), &tuned);
    assert_non_null(recorded);
    tdi_tuning_cache_save(context);
    return recorded;
}

static const tdi_tuned *find(td_context *context, const char *key)
{
    return find_on(context, "here", key, 2);
}

static bool holds(td_context *context, const tdi_tuned *tuned)
{
    return tdi_tuning_cache_holds(cache_of(context), &(tdi_tuned){0}, tuned);
}

/* What was timed beside other processes is timed again by the next process, but holds until one is left alone. */
static void test_unsure(void **state)
{
    (void)state;
    use_folder("");
    td_context *one = fresh_context(), *two, *three;
    assert_true(holds(one, record(one, 1, true)));
    two = fresh_context();
    assert_false(holds(two, find(two, "hurried")));
    assert_int_equal(record(two, 0, true)->chosen, 1);
    assert_true(holds(two, find(two, "hurried")));
    three = fresh_context();
    assert_int_equal(record(three, 0, false)->chosen, 0);
    record(one, 1, true); /* too late */
    td_context_free(three);
    three = fresh_context();
    assert_int_equal(find(three, "hurried")->chosen, 0);
    assert_true(holds(three, find(three, "hurried")));
    json_t *exported = tdi_tuning_cache_export(cache_of(one)); /* as a backup does */
    assert_int_equal(tdi_tuning_cache_import(cache_of(three), exported, NULL), TD_OK);
    assert_int_equal(find(three, "hurried")->chosen, 1);
    assert_true(holds(three, find(three, "hurried")));
    json_decref(exported);
    td_context_free(one);
    td_context_free(two);
    td_context_free(three);
}

/* On a machine that is always busy the least times of three processes are the last word. */
static void test_always_unsure(void **state)
{
    (void)state;
    use_folder("");
    for (int i = 0; i < TDI_OFTEN_ENOUGH; i++) {
        td_context *context = fresh_context();
        assert_false(holds(context, find(context, "busy")));
        tdi_tuned tuned = measured("busy", 1, true);
        tuned.candidates[0].us = i == 1 ? 1.75 : 9;
        bool last = i == TDI_OFTEN_ENOUGH - 1;
        assert_int_equal(tdi_tuning_cache_record(cache_of(context), &tuned)->chosen, last ? 0 : 1);
        tdi_tuning_cache_save(context);
        td_context_free(context);
    }
    td_context *after = fresh_context();
    const tdi_tuned *found = find(after, "busy");
    assert_true(holds(after, found));
    assert_int_equal(found->chosen, 0);
    assert_float_equal(found->candidates[0].us, 1.75, 0);
    td_context_free(after);
}

/* An answer against what is preferred is asked again by the next process, and gives way to one for it. */
static void test_against_preferred(void **state)
{
    (void)state;
    use_folder("");
    tdi_tuned tuned = measured("threads for", 0, false);
    tuned.preferred = 1;
    tuned.worth_it = 0.9;
    td_context *one = fresh_context(), *two, *three;
    assert_int_equal(tdi_tuning_cache_record(cache_of(one), &tuned)->chosen, 0);
    tdi_tuning_cache_save(one);
    two = fresh_context();
    assert_int_equal(find(two, "threads for")->chosen, 0);
    assert_false(holds(two, find(two, "threads for")));
    tuned.chosen = 1;
    assert_int_equal(tdi_tuning_cache_record(cache_of(two), &tuned)->chosen, 1);
    tdi_tuning_cache_save(two);
    three = fresh_context();
    assert_int_equal(find(three, "threads for")->chosen, 1);
    assert_true(holds(three, find(three, "threads for")));
    td_context_free(one);
    td_context_free(two);
    td_context_free(three);
}

/* Where bfloat16 is at stake the first answer stays, in the next process and beside one that asked at the same time. */
static void test_lasting(void **state)
{
    (void)state;
    use_folder("");
    td_context *both[2] = {fresh_context(), fresh_context()}, *later;
    for (int i = 0; i < 2; i++) {
        tdi_tuned tuned = measured("precision", 1 - i, i == 0);
        tuned.lasting = true;
        cache_of(both[1]); /* read before the other has written */
        assert_int_equal(tdi_tuning_cache_record(cache_of(both[i]), &tuned)->chosen, 1 - i);
        tdi_tuning_cache_save(both[i]);
    }
    later = fresh_context();
    const tdi_tuned *found = find(later, "precision");
    assert_int_equal(found->chosen, 1);
    assert_true(found->unsure);
    assert_true(tdi_tuning_cache_holds(cache_of(later), &(tdi_tuned){.lasting = true}, found));
    assert_false(holds(later, found));
    td_context_free(both[0]);
    td_context_free(both[1]);
    td_context_free(later);
}

/* Where timing is off, answers that a backup brings are all there is. */
static void test_restored(void **state)
{
    (void)state;
    use_folder("");
    td_context *one = fresh_context(), *two;
    keep(one, "here", "mine", 1);
    json_t *exported = tdi_tuning_cache_export(cache_of(one));
    setenv("TANDEM_CACHE", "off", 1);
    two = fresh_context();
    assert_int_equal(tdi_tuning_cache_restore(two, exported, NULL), TD_OK);
    assert_int_equal(chosen(two, "here", "mine"), 1);
    assert_true(holds(two, NULL)); /* nothing else is timed */
    json_decref(exported);
    td_context_free(one);
    td_context_free(two);
}

static void expect_rewritten(const char *bytes, size_t size)
{
    scratch_write("choices.json", bytes, size);
    td_context *context = fresh_context();
    cache_of(context);
    assert_int_equal(warnings, 1);
    keep(context, "here", "new", 1);
    td_context_free(context);
    context = fresh_context();
    assert_int_equal(chosen(context, "here", "new"), 1);
    assert_int_equal(warnings, 0);
    td_context_free(context);
}

static void test_damage(void **state)
{
    (void)state;
    static const char *const damaged[] = {"", "not JSON", "[]", "{\"tandem choices\": 1, \"machines\": 3}"};
    use_folder("");
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        expect_rewritten(damaged[i], strlen(damaged[i]));
    td_context *context = fresh_context();
    keep(context, "here", "a", 1);
    td_context_free(context);
    size_t size;
    char *whole = scratch_read("choices.json", &size);
    for (size_t cut = 0; cut + 1 < size; cut += 7)
        expect_rewritten(whole, cut);
    free(whole);
}

/* A newer Tandem's memory, on a home that both use. */
static void test_another_version(void **state)
{
    (void)state;
    static const char newer[] = "{\"tandem choices\": 2, \"machines\": {}}";
    size_t size;
    use_folder("");
    scratch_write("choices.json", newer, sizeof newer - 1);
    td_context *context = fresh_context();
    cache_of(context);
    assert_int_equal(warnings, 1);
    keep(context, "here", "new", 1);
    assert_int_equal(chosen(context, "here", "new"), 1);
    td_context_free(context);
    char *kept = scratch_read("choices.json", &size);
    assert_int_equal(size, sizeof newer - 1);
    assert_memory_equal(kept, newer, size);
    free(kept);
    unlink(scratch_path("choices.json"));
}

/* Entries that make no sense are dropped with a warning; nothing comes of them. */
static void test_wrong_entries(void **state)
{
    (void)state;
    static const char *const entries[] = {"3",
                                          "{}",
                                          "{\"take\": \"quick\", \"us\": []}",
                                          "{\"take\": \"third\", \"us\": [[\"quick\", 1], [\"slow\", 2]]}",
                                          "{\"take\": \"quick\", \"us\": [[\"quick\", -1], [\"slow\", 2]]}",
                                          "{\"take\": \"quick\", \"us\": [[\"quick\", \"1\"], [\"slow\", 2]]}",
                                          "{\"take\": \"quick\", \"us\": [[1, 1], [\"slow\", 2]]}"};
    char text[512];
    use_folder("");
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        snprintf(text, sizeof text, "{\"tandem choices\": 1, \"machines\": {\"here\": {\"a\": %s}}}", entries[i]);
        scratch_write("choices.json", text, strlen(text));
        td_context *context = fresh_context();
        assert_int_equal(chosen(context, "here", "a"), -1);
        assert_int_equal(warnings, 1);
        keep(context, "here", "b", 0);
        td_context_free(context);
        context = fresh_context();
        assert_int_equal(chosen(context, "here", "b"), 0);
        assert_int_equal(warnings, 0);
        td_context_free(context);
    }
}

/* What `tandem doctor` says. */
static void expect_words(const char *words)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    tdi_tuning_cache_describe(out);
    fclose(out);
    assert_non_null(strstr(text, words));
    free(text);
}

static void test_nowhere_to_write(void **state)
{
    (void)state;
    scratch_write("file", "x", 1);
    use_folder("file/below");
    td_context *context = fresh_context();
    keep(context, "here", "a", 1);
    assert_int_equal(infos, 1);
    assert_int_equal(td_failed(context), 0);
    assert_int_equal(chosen(context, "here", "a"), 1);
    td_context_free(context);
    expect_words("kernels: timed in every run; ");
    expect_words("/choices.json cannot be written: Not a directory");
    unsetenv("TANDEM_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    context = fresh_context();
    keep(context, "here", "a", 1);
    assert_int_equal(infos + warnings, 0);
    td_context_free(context);
    unlink(scratch_path("file"));
}

/* Looking makes nothing. */
static void test_described(void **state)
{
    (void)state;
    use_folder("new/folder");
    expect_words("kernels: timed once, remembered in ");
    assert_int_not_equal(access(scratch_path("new"), F_OK), 0);
}

static void test_off(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("TANDEM_CACHE", i ? "OFF" : "off", 1);
        td_context *context = fresh_context();
        assert_null(tdi_tuning_cache_of(context));
        tdi_tuning_cache_save(context);
        td_context_free(context);
        expect_words("chosen by rules");
    }
}

/* Neither read nor replaced. */
static void test_no_file(void **state)
{
    (void)state;
    use_folder("");
    unlink(scratch_path("choices.json"));
    assert_int_equal(mkdir(scratch_path("choices.json"), 0700), 0);
    td_context *context = fresh_context();
    keep(context, "here", "a", 1);
    assert_int_equal(warnings, 1);
    assert_int_equal(infos, 0);
    td_context_free(context);
    expect_words("it is not a file");
    assert_int_equal(rmdir(scratch_path("choices.json")), 0);
}

static void test_folders(void **state)
{
    (void)state;
    unsetenv("TANDEM_CACHE");
    setenv("HOME", scratch_folder, 1);
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, as XDG has it */
    td_context *context = fresh_context();
    keep(context, "here", "a", 1);
    td_context_free(context);
    assert_int_equal(access(scratch_path(".cache/tandem/choices.json"), R_OK), 0);
    setenv("XDG_CACHE_HOME", scratch_path("xdg"), 1);
    context = fresh_context();
    keep(context, "here", "a", 1);
    td_context_free(context);
    assert_int_equal(access(scratch_path("xdg/tandem/choices.json"), R_OK), 0);
    unlink(scratch_path(".cache/tandem/choices.json"));
    unlink(scratch_path("xdg/tandem/choices.json"));
    rmdir(scratch_path(".cache/tandem"));
    rmdir(scratch_path(".cache"));
    rmdir(scratch_path("xdg/tandem"));
    rmdir(scratch_path("xdg"));
}

/* A backup's answers go before the file's. */
static void test_export_and_import(void **state)
{
    (void)state;
    use_folder("");
    td_context *context = fresh_context();
    keep(context, "here", "mine", 1);
    json_t *exported = tdi_tuning_cache_export(cache_of(context));
    assert_non_null(exported);
    keep(context, "here", "mine", 0);
    td_context_free(context);
    context = fresh_context();
    assert_int_equal(chosen(context, "here", "mine"), 0);
    assert_int_equal(tdi_tuning_cache_import(cache_of(context), exported, NULL), TD_OK);
    assert_int_equal(chosen(context, "here", "mine"), 1);
    tdi_error error = {0};
    json_t *wrong = json_pack("{s:i}", "tandem choices", 7);
    assert_int_equal(tdi_tuning_cache_import(cache_of(context), wrong, &error), TD_BAD_FILE);
    json_decref(wrong);
    json_decref(exported);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_back),
                                       cmocka_unit_test(test_unsure),
                                       cmocka_unit_test(test_always_unsure),
                                       cmocka_unit_test(test_against_preferred),
                                       cmocka_unit_test(test_lasting),
                                       cmocka_unit_test(test_restored),
                                       cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_another_version),
                                       cmocka_unit_test(test_wrong_entries),
                                       cmocka_unit_test(test_nowhere_to_write),
                                       cmocka_unit_test(test_export_and_import),
                                       cmocka_unit_test(test_described),
                                       cmocka_unit_test(test_off),
                                       cmocka_unit_test(test_no_file),
                                       cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
