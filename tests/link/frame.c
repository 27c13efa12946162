/* Headers: their bytes, there and back, and what a check names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "link/frame.h"

static const tdi_frame frame = {.length = 0x04030201,
                                .kind = 0x0605,
                                .flags = 0x0807,
                                .id = 0x0c0b0a09,
                                .generation = 0x100f0e0d,
                                .step = 0x14131211,
                                .shard = 0x18171615,
                                .offset = 0x201f1e1d1c1b1a19};

static void bytes_are_little_endian(void **state)
{
    (void)state;
    unsigned char bytes[TDI_FRAME_BYTES];
    tdi_frame_encode(&frame, bytes);
    for (int i = 0; i < TDI_FRAME_BYTES; i++)
        assert_int_equal(bytes[i], i + 1);
    tdi_frame back = tdi_frame_decode(bytes);
    assert_memory_equal(&back, &frame, sizeof frame);
}

static void expect(tdi_frame seen, tdi_frame_expected expected, const char *words)
{
    tdi_error error = {0};
    td_status status = tdi_frame_check(&seen, &expected, &error);
    assert_int_equal(status, words ? TD_INVALID_ARGUMENT : TD_OK);
    if (words)
        assert_string_equal(error.message, words);
}

static void checks_name_what_differs(void **state)
{
    (void)state;
    const tdi_frame like = {.kind = 2, .id = 3, .generation = 4, .step = 5, .shard = 6};
    const tdi_frame_expected expected = {like, 100};
    tdi_frame seen = like;
    seen.length = 100;
    seen.flags = 9;
    expect(seen, expected, NULL);
    seen.length = 60;
    seen.offset = 40;
    expect(seen, expected, NULL);
    seen.offset = 41;
    expect(seen, expected, "frame: expected at most 100 bytes in all, got 60 from byte 41 on");
    seen.offset = UINT64_MAX - 10; /* a sum would wrap */
    expect(seen, expected, "frame: expected at most 100 bytes in all, got 60 from byte 18446744073709551605 on");
    seen.offset = 100;
    seen.length = 0;
    expect(seen, expected, NULL);
    seen.shard = 7;
    expect(seen, expected, "frame: expected shard 6, got 7");
    seen.id = 8;
    expect(seen, expected, "frame: expected id 3, got 8");
    seen.step = 9;
    expect(seen, expected, "frame: expected step 5, got 9");
    seen.kind = 10;
    expect(seen, expected, "frame: expected kind 2, got 10");
    seen.generation = 11;
    expect(seen, expected, "frame: expected generation 4, got 11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_little_endian),
                                       cmocka_unit_test(checks_name_what_differs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
