/* ucx_wire.c - a wire's queue: frames become messages, as many as the peer has room for. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/ucx_struct.h"

enum { MEMORIES = 65536 }; /* whose number fits in a message */

void tdi_ucx_wire_fail(tdi_ucx_wire *w, td_status status, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    if (w->state != TDI_UCX_OPEN)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    tdi_error_init(&w->why);
    tdi_fail(&w->why, status, "%s: %s", w->name, sentence);
    w->state = TDI_UCX_ENDING;
    tdi_ucx_wire_cut(w);
}

/* ---- messages ---- */

static tdi_ucx_parcel *take_parcel(tdi_ucx_fabric *f)
{
    tdi_ucx_parcel *parcel = f->spare;
    if (!parcel)
        return malloc(sizeof *parcel);
    f->spare = parcel->next;
    return parcel;
}

static void return_parcel(tdi_ucx_fabric *f, tdi_ucx_parcel *parcel)
{
    parcel->next = f->spare;
    f->spare = parcel;
}

static void on_posted(void *request, ucs_status_t status, void *user)
{
    tdi_ucx_parcel *parcel = user;
    tdi_ucx_wire *w = parcel->wire;
    w->held_by_ucx--;
    if (parcel->outgoing)
        parcel->outgoing->pending--;
    if (status != UCS_OK && w->failed == UCS_OK)
        w->failed = status;
    return_parcel(w->fabric, parcel);
    w->fabric->api->ucp_request_free(request);
}

void tdi_ucx_wire_post(tdi_ucx_wire *w, const tdi_ucx_message *message, tdi_ucx_outgoing *outgoing, const void *data,
                       size_t size)
{
    tdi_ucx_parcel *parcel = take_parcel(w->fabric);
    if (!parcel) {
        w->failed = UCS_ERR_NO_MEMORY;
        return;
    }
    parcel->wire = w;
    parcel->outgoing = outgoing;
    tdi_ucx_message_encode(message, parcel->head);
    const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                        .flags = UCP_AM_SEND_FLAG_EAGER,
                                        .cb.send = on_posted,
                                        .user_data = parcel,
                                        .memory_type = UCS_MEMORY_TYPE_HOST};
    void *request =
        w->fabric->api->ucp_am_send_nbx(w->endpoint, 0, parcel->head, sizeof parcel->head, data, size, &params);
    if (UCS_PTR_IS_PTR(request)) {
        w->held_by_ucx++;
        if (outgoing)
            outgoing->pending++;
        return;
    }
    return_parcel(w->fabric, parcel);
    if (UCS_PTR_STATUS(request) != UCS_OK && w->failed == UCS_OK)
        w->failed = UCS_PTR_STATUS(request);
}

static tdi_ucx_message message_of(const tdi_ucx_wire *w, tdi_ucx_what what)
{
    return (tdi_ucx_message){.token = w->fabric->token,
                             .sender = w->fabric->number,
                             .generation = w->fabric->generation,
                             .what = (uint16_t)what};
}

/* ---- the queue ---- */

static tdi_ucx_outgoing *add(tdi_ucx_wire *w, tdi_ucx_what what)
{
    tdi_ucx_outgoing *out = calloc(1, sizeof *out);
    if (!out) {
        w->failed = UCS_ERR_NO_MEMORY;
        return NULL;
    }
    out->message = message_of(w, what);
    if (w->last)
        w->last->next = out;
    else
        w->first = out;
    w->last = out;
    if (!w->unsent)
        w->unsent = out;
    return out;
}

static void tell_of(tdi_ucx_wire *w, const tdi_ucx_memory *memory)
{
    tdi_ucx_outgoing *out = add(w, TDI_UCX_MEMORY);
    if (!out || !tdi_push(&w->told, memory->serial)) {
        free(memory->key);
        w->failed = UCS_ERR_NO_MEMORY;
        return;
    }
    out->message.memory = (uint16_t)(w->told.count - 1);
    out->message.position = (uint64_t)(uintptr_t)memory->address;
    out->message.size = memory->size;
    out->message.frame.length = (uint32_t)memory->key_size;
    out->payload = out->copy = memory->key;
}

/* Tells the peer of the memories that it does not know. */
static void tell_of_memories(tdi_ucx_wire *w)
{
    tdi_ucx_memory memory;
    tdi_ucx *engine = w->fabric->engine;
    while (w->last_told < atomic_load(&engine->serial) && w->told.count < MEMORIES &&
           tdi_ucx_memory_next(engine, w->last_told, &memory)) {
        tell_of(w, &memory);
        w->last_told = memory.serial;
    }
}

/* The memory's number on this wire, or -1. */
static int number_of(const tdi_ucx_wire *w, uint64_t serial)
{
    int i = w->told.count - 1;
    while (i >= 0 && w->told.at[i] != serial)
        i--;
    return i;
}

static void choose_way(tdi_ucx_wire *w, tdi_ucx_outgoing *out)
{
    uint64_t position, serial;
    if (out->message.frame.length <= TDI_UCX_PIECE || w->side == TDI_UCX_FAR)
        return;
    serial = tdi_ucx_memory_find(w->fabric->engine, out->payload, out->message.frame.length, &position);
    int number = serial ? number_of(w, serial) : -1;
    if (number < 0)
        return;
    out->message.what = TDI_UCX_SEEN;
    out->message.memory = (uint16_t)number;
    out->message.position = position;
}

void tdi_ucx_wire_send(tdi_wire *wire, const tdi_frame *frame, const void *payload)
{
    tdi_ucx_wire *w = (tdi_ucx_wire *)wire;
    if (w->state != TDI_UCX_OPEN)
        return;
    if (w->side == TDI_UCX_NEAR)
        tell_of_memories(w);
    tdi_ucx_outgoing *out = add(w, TDI_UCX_DATA);
    if (!out)
        return;
    out->message.frame = *frame;
    out->payload = payload;
    choose_way(w, out);
}

/* Bytes that the next message of it carries. */
static size_t next_size(const tdi_ucx_outgoing *out)
{
    uint64_t left = out->message.frame.length - out->handed;
    if (out->message.what == TDI_UCX_SEEN)
        return 0;
    return left < TDI_UCX_PIECE ? left : TDI_UCX_PIECE;
}

static void hand_over(tdi_ucx_wire *w, tdi_ucx_outgoing *out)
{
    size_t size = next_size(out);
    const char *data = size ? (const char *)out->payload + out->handed : NULL;
    out->message.sequence = out->sequence = ++w->sequence;
    if (out->message.what == TDI_UCX_DATA)
        out->message.position = out->handed;
    out->handed += size;
    out->all_handed = out->message.what == TDI_UCX_SEEN || out->handed == out->message.frame.length;
    tdi_ucx_wire_post(w, &out->message, out, data, size);
}

static bool can_hand_over(const tdi_ucx_wire *w)
{
    return w->unsent && w->settled && w->sequence - w->taken < (uint64_t)w->fabric->windows[w->side];
}

static bool is_settled(tdi_ucx_wire *w)
{
    w->settled = w->settled || (w->inbox->greeted && !w->held_by_ucx);
    return w->settled;
}

static void push(tdi_ucx_wire *w)
{
    if (!is_settled(w))
        return;
    while (w->failed == UCS_OK && can_hand_over(w)) {
        tdi_ucx_outgoing *out = w->unsent;
        hand_over(w, out);
        if (out->all_handed)
            w->unsent = out->next;
    }
}

static bool is_sent(const tdi_ucx_wire *w, const tdi_ucx_outgoing *out)
{
    return out->all_handed && !out->pending && (out->message.what != TDI_UCX_SEEN || w->taken >= out->sequence);
}

static void drop_first(tdi_ucx_wire *w)
{
    tdi_ucx_outgoing *out = w->first;
    w->first = out->next;
    if (!w->first)
        w->last = w->unsent = NULL;
    free(out->copy);
    free(out);
}

static void tell_sent(tdi_ucx_wire *w)
{
    const tdi_sinks *sinks = &w->fabric->sinks;
    while (w->first && is_sent(w, w->first)) {
        tdi_ucx_outgoing out = *w->first;
        drop_first(w);
        if (out.message.what == TDI_UCX_MEMORY)
            continue;
        w->fabric->moved = true;
        if (sinks->sent)
            sinks->sent(sinks->user, w->peer, &out.message.frame, out.payload);
    }
}

/* Tells the sender what has been dealt with: at once where it waits for that, else when half of its room is gone. */
static void acknowledge(tdi_ucx_wire *w)
{
    uint64_t done = w->inbox->dealt_with;
    uint64_t half = (uint64_t)w->fabric->windows[w->side] / 2;
    if (done == w->acknowledged || (!w->hurries && done - w->acknowledged < half))
        return;
    tdi_ucx_message message = message_of(w, TDI_UCX_TAKEN);
    message.sequence = w->acknowledged = done;
    w->hurries = false;
    tdi_ucx_wire_post(w, &message, NULL, NULL, 0);
}

void tdi_ucx_wire_greet(tdi_ucx_wire *w)
{
    static const char more[256]; /* too long for the queue itself, so that UCX attaches to its memory now */
    tdi_ucx_message message = message_of(w, TDI_UCX_TAKEN);
    tdi_ucx_wire_post(w, &message, NULL, more, sizeof more);
}

bool tdi_ucx_wire_is_open(const tdi_ucx_wire *w)
{
    atomic_thread_fence(memory_order_acquire);
    return w->mark && atomic_load_explicit(w->mark, memory_order_relaxed) == w->inbox->sender;
}

/* ---- its end ---- */

static void close_endpoint(tdi_ucx_wire *w)
{
    const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = w->fabric->api->ucp_ep_close_nbx(w->endpoint, &params);
    w->closing = UCS_PTR_IS_PTR(request) ? request : NULL;
}

void tdi_ucx_wire_cut(tdi_ucx_wire *w)
{
    if (!w->endpoint || (w->side == TDI_UCX_FAR && w->failed == UCS_OK && !is_settled(w)))
        return;
    tdi_ucx_message bye = message_of(w, TDI_UCX_BYE);
    if (w->failed == UCS_OK)
        tdi_ucx_wire_post(w, &bye, NULL, NULL, 0);
    if (w->side == TDI_UCX_FAR)
        close_endpoint(w);
    w->endpoint = NULL; /* near, it ends with the worker */
}

bool tdi_ucx_wire_is_cut(tdi_ucx_wire *w)
{
    const tdi_ucx_api *api = w->fabric->api;
    if (w->closing && api->ucp_request_check_status(w->closing) != UCS_INPROGRESS) {
        api->ucp_request_free(w->closing);
        w->closing = NULL;
    }
    return !w->endpoint && !w->closing && !w->held_by_ucx;
}

static void tell_lost(tdi_ucx_wire *w)
{
    w->state = TDI_UCX_LOST;
    while (w->first)
        drop_first(w);
    tdi_ucx_inbox_clear(w->fabric, w->inbox);
    w->fabric->moved = true;
    w->fabric->sinks.lost(w->fabric->sinks.user, w->peer, &w->why);
}

void tdi_ucx_wire_release(tdi_ucx_wire *w)
{
    const tdi_ucx_api *api = w->fabric->api;
    while (w->first)
        drop_first(w);
    for (int i = 0; i < w->seen.count; i++)
        if (w->seen.at[i].key)
            api->ucp_rkey_destroy(w->seen.at[i].key);
    tdi_ucx_marks_close(&w->marks);
    tdi_vec_free(&w->seen);
    tdi_vec_free(&w->told);
}

/* ---- a pump ---- */

static void notice_failures(tdi_ucx_wire *w)
{
    const tdi_ucx_inbox *inbox = w->inbox;
    if (w->failed != UCS_OK)
        tdi_ucx_wire_fail(w, w->failed == UCS_ERR_NO_MEMORY ? TD_NO_MEMORY : TD_IO, "UCX: %s",
                          w->fabric->api->ucs_status_string(w->failed));
    else if (inbox->fault)
        tdi_ucx_wire_fail(w, TD_INVALID_ARGUMENT, "%s", inbox->fault);
    else if (inbox->said_bye && !inbox->count)
        tdi_ucx_wire_fail(w, TD_IO, "has closed the connection");
}

void tdi_ucx_wire_move(tdi_ucx_wire *w)
{
    if (w->state == TDI_UCX_OPEN) {
        tdi_ucx_inbox_take(w);
        tell_sent(w);
    }
    if (w->state == TDI_UCX_OPEN) {
        push(w);
        tell_sent(w);
        acknowledge(w);
        notice_failures(w);
    }
    if (w->state == TDI_UCX_ENDING) {
        tdi_ucx_wire_cut(w);
        if (tdi_ucx_wire_is_cut(w))
            tell_lost(w);
    }
}

bool tdi_ucx_wire_has_work(const tdi_ucx_wire *w)
{
    return w->state == TDI_UCX_ENDING ||
           (w->state == TDI_UCX_OPEN && (can_hand_over(w) || (w->first && is_sent(w, w->first)) ||
                                         w->failed != UCS_OK || w->inbox->fault || tdi_ucx_inbox_has_work(w)));
}
