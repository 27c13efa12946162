/* message.c - messages to frames and back. */
#include "cluster/message.h"

#include <stddef.h>
#include <string.h>

typedef struct writer {
    unsigned char *at;
} writer;

static void put(writer *w, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        *w->at++ = (unsigned char)(value >> 8 * i);
}

/* Reads zeros behind the end, and knows that it has. */
typedef struct reader {
    const unsigned char *at, *end;
    bool short_of;
} reader;

static uint64_t get(reader *r, int size)
{
    uint64_t value = 0;
    if (r->end - r->at < size) {
        r->short_of = true;
        return 0;
    }
    for (int i = 0; i < size; i++)
        value |= (uint64_t)r->at[i] << 8 * i;
    r->at += size;
    return value;
}

static uint32_t get4(reader *r)
{
    return (uint32_t)get(r, 4);
}

/* ---- views ---- */

static tdi_task_set named(const tdi_view *view)
{
    return tdi_view_everyone(view) | view->strangers;
}

static void put_view(writer *w, const tdi_view *view)
{
    put(w, view->generation, 4);
    put(w, view->order, 4);
    put(w, view->since, 4);
    put(w, view->step, 4);
    put(w, view->state, 8);
    put(w, (uint32_t)view->donor, 4);
    put(w, view->members, 8);
    put(w, view->witnesses, 8);
    put(w, view->voters, 8);
    put(w, view->strangers, 8);
    put(w, view->makers, 8);
    for (int t = tdi_lowest_task(named(view)); t >= 0; t = tdi_next_task(named(view), t)) {
        put(w, view->incarnation[t], 8);
        put(w, view->facts[t], 4);
    }
}

static void get_view(reader *r, tdi_view *view)
{
    *view = (tdi_view){.generation = get4(r), .order = get4(r), .since = get4(r), .step = get4(r)};
    view->state = get(r, 8);
    uint32_t donor = get4(r);
    view->donor = donor < TDI_VIEW_TASKS ? (int)donor : TDI_NO_TASK;
    view->members = get(r, 8);
    view->witnesses = get(r, 8);
    view->voters = get(r, 8);
    view->strangers = get(r, 8);
    view->makers = get(r, 8);
    for (int t = tdi_lowest_task(named(view)); t >= 0; t = tdi_next_task(named(view), t)) {
        view->incarnation[t] = get(r, 8);
        view->facts[t] = get4(r);
    }
}

/* ---- payloads ---- */

bool tdi_message_has_view(const tdi_message *message)
{
    return message->kind == TDI_SAY_PROPOSE || message->kind == TDI_SAY_COMMIT ||
           (message->kind == TDI_SAY_PROMISE && message->other);
}

static void put_payload(writer *w, const tdi_message *m)
{
    bool tells_state = m->kind == TDI_SAY_BEAT || m->kind == TDI_SAY_PROMISE;
    if (m->kind == TDI_SAY_BEAT)
        put(w, m->incarnation, 8);
    if (tells_state) {
        put(w, m->state, 8);
        put(w, m->hears, 8);
        put(w, m->known, 4);
        put(w, m->facts, 4);
    }
    if (m->kind == TDI_SAY_BEAT) {
        put(w, m->at.phase, 4);
        put(w, m->at.done, 4);
        put(w, m->at.of, 4);
    }
    if (m->kind == TDI_SAY_PREPARE || m->kind == TDI_SAY_COMMIT)
        put(w, m->gone, 8);
    if (m->kind == TDI_SAY_PROMISE || m->kind == TDI_SAY_REFUSE)
        put(w, m->other, 4);
    if (tdi_message_has_view(m))
        put_view(w, &m->next);
}

static void get_payload(reader *r, tdi_message *m)
{
    bool tells_state = m->kind == TDI_SAY_BEAT || m->kind == TDI_SAY_PROMISE;
    if (m->kind == TDI_SAY_BEAT)
        m->incarnation = get(r, 8);
    if (tells_state) {
        m->state = get(r, 8);
        m->hears = get(r, 8);
        m->known = get4(r);
        m->facts = get4(r);
    }
    if (m->kind == TDI_SAY_BEAT) {
        uint32_t phase = get4(r);
        m->at.phase = phase < TDI_PHASES ? (tdi_phase)phase : TDI_PHASE_IDLE;
        m->at.done = get4(r);
        m->at.of = get4(r);
    }
    if (m->kind == TDI_SAY_PREPARE || m->kind == TDI_SAY_COMMIT)
        m->gone = get(r, 8);
    if (m->kind == TDI_SAY_PROMISE || m->kind == TDI_SAY_REFUSE)
        m->other = get4(r);
    if (tdi_message_has_view(m))
        get_view(r, &m->next);
}

void tdi_message_encode(const tdi_message *message, tdi_frame *frame, unsigned char payload[TDI_MESSAGE_BYTES])
{
    writer w = {payload};
    put_payload(&w, message);
    *frame = (tdi_frame){.length = (uint32_t)(w.at - payload),
                         .kind = (uint16_t)message->kind,
                         .flags = (uint16_t)message->flags,
                         .id = message->order,
                         .generation = (uint32_t)(message->view >> 32),
                         .step = message->at.step,
                         .shard = (uint32_t)message->view};
}

/* ---- from others ---- */

const char *tdi_say_name(uint32_t kind)
{
    static const char *const names[] = {"BEAT", "PREPARE", "PROMISE", "REFUSE", "PROPOSE", "ACCEPT", "COMMIT"};
    return kind >= TDI_SAY_BEAT && kind < TDI_SAY_END ? names[kind - TDI_SAY_BEAT] : NULL;
}

td_status tdi_message_check(const tdi_frame *frame, tdi_error *error)
{
    if (!tdi_say_name(frame->kind))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "frame: expected a kind from %d to %d, got %u", TDI_SAY_BEAT,
                        TDI_SAY_END - 1, frame->kind);
    if (frame->length > TDI_MESSAGE_BYTES)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: expected at most %d bytes, got %u", tdi_say_name(frame->kind),
                        TDI_MESSAGE_BYTES, frame->length);
    return TD_OK;
}

td_status tdi_message_decode(const tdi_frame *frame, const unsigned char *payload, tdi_message *message,
                             tdi_error *error)
{
    reader r = {payload, payload + frame->length, false};
    TDI_TRY(tdi_message_check(frame, error));
    memset(message, 0, offsetof(tdi_message, next));
    message->kind = (tdi_say)frame->kind;
    message->flags = frame->flags;
    message->view = (uint64_t)frame->generation << 32 | frame->shard;
    message->order = frame->id;
    message->at.step = frame->step;
    get_payload(&r, message);
    if (r.short_of || r.at != r.end)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: its %u bytes are %s for what they say",
                        tdi_say_name(frame->kind), frame->length, r.short_of ? "too few" : "too many");
    if (message->kind == TDI_SAY_BEAT && message->incarnation == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "BEAT: expected an incarnation from 1 on, got 0");
    if (tdi_message_has_view(message) && !tdi_view_is_sound(&message->next))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: its view, generation %u, cannot be one",
                        tdi_say_name(frame->kind), message->next.generation);
    return TD_OK;
}
