/* Messages: to frames and back, cut at every byte, and what no process says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/message.h"

static tdi_view make_view(void)
{
    tdi_view view = {.generation = 9,
                     .order = 130,
                     .since = 8,
                     .step = 812,
                     .state = 7ull << 32 | 64,
                     .donor = 2,
                     .members = 0x7,
                     .witnesses = 0x8,
                     .voters = 0xb,
                     .strangers = (tdi_task_set)1 << 63,
                     .makers = 0x3};
    for (int t = 0; t < 4; t++) {
        view.incarnation[t] = 1000u + (unsigned)t;
        view.facts[t] = t < 3 ? 0x20000u + (unsigned)t : 0;
    }
    view.incarnation[63] = UINT64_MAX;
    return view;
}

static void set_payload(tdi_message *m)
{
    bool beat = m->kind == TDI_SAY_BEAT, promise = m->kind == TDI_SAY_PROMISE;
    if (beat) {
        m->incarnation = 77;
        m->at = (tdi_progress){812, TDI_PHASE_EXCHANGE, 3, 5};
    }
    if (beat || promise) {
        m->state = 6ull << 32 | 1;
        m->hears = 0xff;
        m->known = 11;
        m->facts = 0x10002;
    }
    if (m->kind == TDI_SAY_PREPARE || m->kind == TDI_SAY_COMMIT)
        m->gone = 0x12;
    if (promise || m->kind == TDI_SAY_REFUSE)
        m->other = 65;
    if (tdi_message_has_view(m))
        m->next = make_view();
}

static tdi_message make_message(int kind)
{
    tdi_message m = {.kind = (tdi_say)kind,
                     .flags = TDI_SAY_LEAVES | TDI_SAY_VOTES,
                     .view = 8ull << 32 | 64,
                     .order = 131,
                     .at = {.step = 812}};
    set_payload(&m);
    return m;
}

static void all_kinds_come_back(void **state)
{
    (void)state;
    static unsigned char payload[TDI_MESSAGE_BYTES];
    for (int kind = TDI_SAY_BEAT; kind < TDI_SAY_END; kind++) {
        static tdi_message back;
        tdi_message m = make_message(kind);
        tdi_frame frame;
        memset(&back, 0, sizeof back);
        tdi_message_encode(&m, &frame, payload);
        assert_int_equal(frame.kind, kind);
        assert_int_equal(frame.generation, 8);
        assert_int_equal(tdi_message_decode(&frame, payload, &back, NULL), TD_OK);
        assert_int_equal(back.kind, m.kind);
        assert_int_equal(back.flags, m.flags);
        assert_int_equal(back.view, m.view);
        assert_int_equal(back.order, m.order);
        assert_memory_equal(&back.at, &m.at, sizeof m.at);
        assert_true(back.incarnation == m.incarnation && back.state == m.state && back.hears == m.hears &&
                    back.gone == m.gone && back.known == m.known && back.facts == m.facts && back.other == m.other);
        assert_memory_equal(&back.next, &m.next, sizeof m.next);
    }
}

static void expect_refused(const tdi_frame *frame, const unsigned char *payload, const char *sentence)
{
    static tdi_message back;
    tdi_error error = {0};
    unsigned char *exact = malloc(frame->length ? frame->length : 1);
    assert_non_null(exact);
    memcpy(exact, payload, frame->length);
    assert_int_equal(tdi_message_decode(frame, exact, &back, &error), TD_INVALID_ARGUMENT);
    free(exact);
    assert_true(error.message[0]);
    if (sentence)
        assert_string_equal(error.message, sentence);
}

static void messages_cut_anywhere_are_refused(void **state)
{
    (void)state;
    static unsigned char payload[TDI_MESSAGE_BYTES];
    for (int kind = TDI_SAY_BEAT; kind < TDI_SAY_END; kind++) {
        tdi_message m = make_message(kind);
        tdi_frame frame;
        tdi_message_encode(&m, &frame, payload);
        uint32_t whole = frame.length;
        for (frame.length = 0; frame.length < whole; frame.length++)
            expect_refused(&frame, payload, NULL);
        frame.length = whole + 1;
        payload[whole] = 0;
        expect_refused(&frame, payload, NULL);
    }
}

static void what_no_process_says_is_named(void **state)
{
    (void)state;
    static unsigned char payload[TDI_MESSAGE_BYTES + 1];
    tdi_message m = make_message(TDI_SAY_COMMIT);
    tdi_frame frame;
    m.next.voters = 0x17;
    tdi_message_encode(&m, &frame, payload);
    expect_refused(&frame, payload, "COMMIT: its view, generation 9, cannot be one");
    m = make_message(TDI_SAY_ACCEPT);
    tdi_message_encode(&m, &frame, payload);
    frame.length = 4;
    expect_refused(&frame, payload, "ACCEPT: its 4 bytes are too many for what they say");
    frame.kind = TDI_SAY_END;
    expect_refused(&frame, payload, "frame: expected a kind from 64 to 70, got 71");
    m = make_message(TDI_SAY_BEAT);
    m.incarnation = 0;
    tdi_message_encode(&m, &frame, payload);
    expect_refused(&frame, payload, "BEAT: expected an incarnation from 1 on, got 0");
    frame.length = TDI_MESSAGE_BYTES + 1;
    expect_refused(&frame, payload, NULL);
}

/* The largest view fits, and so does what names it. */
static void the_largest_fits(void **state)
{
    (void)state;
    static unsigned char payload[TDI_MESSAGE_BYTES];
    static tdi_message back;
    tdi_message m = {.kind = TDI_SAY_PROMISE, .other = 64};
    tdi_frame frame;
    m.next = (tdi_view){.generation = 1, .since = 1, .members = ~(tdi_task_set)0, .voters = ~(tdi_task_set)0};
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        m.next.incarnation[t] = UINT64_MAX - (unsigned)t;
    tdi_message_encode(&m, &frame, payload);
    assert_int_equal(frame.length, TDI_MESSAGE_BYTES);
    assert_int_equal(tdi_message_decode(&frame, payload, &back, NULL), TD_OK);
    assert_memory_equal(&back.next, &m.next, sizeof m.next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_come_back), cmocka_unit_test(messages_cut_anywhere_are_refused),
        cmocka_unit_test(what_no_process_says_is_named), cmocka_unit_test(the_largest_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
