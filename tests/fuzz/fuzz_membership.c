/* fuzz_membership.c - any frames from two peers: what is a message comes back from its encoding as it was, and a
 * membership that receives it goes on, within its limits. The bytes are records of peer, frame and payload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/membership.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TASKS = 3 };

static void want(bool holds)
{
    if (!holds)
        abort();
}

static void check_again(const tdi_frame *frame, const uint8_t *payload)
{
    static tdi_message message;
    static unsigned char again[TDI_MESSAGE_BYTES];
    tdi_frame back;
    if (tdi_message_decode(frame, payload, &message, NULL) != TD_OK)
        return;
    want(!tdi_message_has_view(&message) || tdi_view_is_sound(&message.next));
    tdi_message_encode(&message, &back, again);
    want(back.length == frame->length && back.kind == frame->kind);
    want(message.kind == TDI_SAY_BEAT || memcmp(again, payload, frame->length) == 0);
}

/* Answers what it asks for, as a driver does. */
static void obey(tdi_membership *m, tdi_actions *out, double now)
{
    for (int round = 0; round < 8 && out->count > 0; round++) {
        bool stops = false, forms = false;
        want(out->count <= TDI_MAX_ACTIONS);
        for (int i = 0; i < out->count; i++) {
            const tdi_action *action = &out->at[i];
            want(action->kind != TDI_DO_SEND || tdi_message_check(&action->frame, NULL) == TD_OK);
            stops = stops || action->kind == TDI_DO_STOP || action->kind == TDI_DO_PAUSE || action->kind == TDI_DO_OUT;
            forms = forms || action->kind == TDI_DO_VIEW;
        }
        out->count = 0;
        if (stops)
            tdi_membership_stopped(m, tdi_membership_view(m)->step, now, out);
        else if (forms)
            tdi_membership_ready(m, now, out);
    }
    out->count = 0;
}

/* One record; the bytes that it took, 0: there are not enough. */
static size_t receive(tdi_membership *m, const uint8_t *bytes, size_t size, double now, tdi_actions *out)
{
    if (size < 1 + TDI_FRAME_BYTES)
        return 0;
    tdi_frame frame = tdi_frame_decode(bytes + 1);
    size_t left = size - 1 - TDI_FRAME_BYTES;
    int peer = 1 + bytes[0] % (TASKS - 1);
    if (bytes[0] & 0x40) {
        tdi_membership_link_down(m, peer, now, out);
        obey(m, out, now);
        tdi_membership_link_up(m, peer, 1 + bytes[1], now, out);
    }
    if (tdi_message_check(&frame, NULL) != TD_OK || frame.length > left)
        return 1 + TDI_FRAME_BYTES;
    unsigned char *payload = malloc(frame.length ? frame.length : 1); /* of its exact size, for sanitizers */
    want(payload != NULL);
    memcpy(payload, bytes + 1 + TDI_FRAME_BYTES, frame.length);
    check_again(&frame, payload);
    (void)tdi_membership_receive(m, peer, &frame, payload, now, out, NULL);
    free(payload);
    return 1 + TDI_FRAME_BYTES + frame.length;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static tdi_actions out;
    static const char *const names[TASKS] = {"chief", "worker 0", "evaluator"};
    tdi_membership_settings settings = {.tasks = TASKS, .trains = 3, .incarnation = 1, .names = names};
    tdi_membership *m;
    double now = 0;
    if (tdi_membership_create(&settings, now, &m, NULL) != TD_OK)
        return 0;
    for (int peer = 1; peer < TASKS; peer++)
        tdi_membership_link_up(m, peer, 1, now, &out);
    for (size_t took; (took = receive(m, bytes, size, now, &out)) > 0; bytes += took, size -= took) {
        obey(m, &out, now);
        now += 0.05;
        tdi_membership_tick(m, now, &out);
        obey(m, &out, now);
    }
    tdi_membership_free(m);
    return 0;
}
