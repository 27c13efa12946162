/* ucx_inbox.c - what comes: kept in a ring as UCX delivers it, and dealt with in order, when a pump asks the sinks. */
#include <stdlib.h>
#include <string.h>

#include "link/ucx_struct.h"

tdi_ucx_inbox *tdi_ucx_inbox_of(tdi_ucx_fabric *f, uint64_t sender)
{
    for (int i = 0; i < f->peers; i++)
        if (f->inboxes[i].sender == sender)
            return &f->inboxes[i];
    for (int i = 0; i < f->peers; i++)
        if (!f->inboxes[i].sender) {
            f->inboxes[i].sender = sender;
            return &f->inboxes[i];
        }
    return NULL;
}

/* ---- from UCX to the ring ---- */

static void note_taken(const tdi_ucx_inbox *inbox, uint64_t sequence)
{
    tdi_ucx_wire *w = inbox->wire;
    if (w && sequence > w->taken && sequence <= w->sequence)
        w->taken = sequence;
}

static bool is_numbered(uint16_t what)
{
    return what >= TDI_UCX_DATA && what <= TDI_UCX_MEMORY;
}

/* What a message that does not follow the rules has done wrong, or NULL. */
static const char *fault_of(const tdi_ucx_inbox *inbox, const tdi_ucx_message *message)
{
    if (!is_numbered(message->what))
        return "sent a message of a kind that there is not";
    if (message->sequence != inbox->received + 1)
        return "sent a message out of its order";
    return inbox->count == TDI_UCX_WINDOW ? "sent more than there was room for" : NULL;
}

/* Puts it in the ring. The data stay with the worker, or are copied where that is NULL. */
static void keep(tdi_ucx_inbox *inbox, const tdi_ucx_message *message, void *data, size_t size, ucp_worker_h worker)
{
    tdi_ucx_incoming *in = &inbox->ring[(inbox->first + inbox->count) % TDI_UCX_WINDOW];
    *in = (tdi_ucx_incoming){*message, data, size, worker};
    if (!worker) {
        in->data = size ? malloc(size) : NULL;
        if (size && !in->data) {
            inbox->fault = "sent a message for which there is no memory";
            return;
        }
        if (size)
            memcpy(in->data, data, size);
    }
    inbox->count++;
    inbox->received++;
}

static bool is_of_this_view(const tdi_ucx_fabric *f, const tdi_ucx_message *message)
{
    return message->token == f->token && message->generation == f->generation && message->sender != 0 &&
           message->sender != f->number;
}

ucs_status_t tdi_ucx_inbox_on_message(void *argument, const void *head, size_t head_size, void *data, size_t size,
                                      const ucp_am_recv_param_t *param)
{
    tdi_ucx_side *side = argument;
    tdi_ucx_fabric *f = side->fabric;
    bool stays = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA;
    if (head_size != TDI_UCX_MESSAGE_BYTES || param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        return UCS_OK;
    const tdi_ucx_message message = tdi_ucx_message_decode(head);
    tdi_ucx_inbox *inbox = is_of_this_view(f, &message) ? tdi_ucx_inbox_of(f, message.sender) : NULL;
    if (!inbox || inbox->fault || inbox->said_bye)
        return UCS_OK;
    inbox->greeted = true;
    if (f->closing)
        return UCS_OK;
    if (message.what == TDI_UCX_TAKEN)
        note_taken(inbox, message.sequence);
    else if (message.what == TDI_UCX_BYE)
        inbox->said_bye = true;
    else if (!(inbox->fault = fault_of(inbox, &message))) {
        keep(inbox, &message, data, size, stays ? side->worker : NULL);
        return stays ? UCS_INPROGRESS : UCS_OK;
    }
    return UCS_OK;
}

static void release_data(const tdi_ucx_fabric *f, tdi_ucx_incoming *in)
{
    if (!in->worker)
        free(in->data);
    else if (in->data)
        f->api->ucp_am_data_release(in->worker, in->data);
    in->data = NULL;
}

static void drop_first(const tdi_ucx_fabric *f, tdi_ucx_inbox *inbox)
{
    release_data(f, &inbox->ring[inbox->first]);
    inbox->first = (inbox->first + 1) % TDI_UCX_WINDOW;
    inbox->count--;
    inbox->dealt_with++;
}

void tdi_ucx_inbox_clear(tdi_ucx_fabric *f, tdi_ucx_inbox *inbox)
{
    while (inbox->count)
        drop_first(f, inbox);
}

/* ---- from the ring to the sinks ---- */

/* False: the sink says that it is not yet time, or that the peer errs. */
static bool begin_frame(tdi_ucx_wire *w, const tdi_frame *frame)
{
    const tdi_sinks *sinks = &w->fabric->sinks;
    tdi_error refusal;
    tdi_error_init(&refusal);
    w->place = NULL;
    tdi_sink_answer answer = sinks->place(sinks->user, w->peer, frame, &w->place, &refusal);
    w->held = answer == TDI_HOLD;
    if (w->held)
        return false;
    w->fabric->moved = true;
    if (answer == TDI_REFUSE) {
        tdi_ucx_wire_fail(w, TD_INVALID_ARGUMENT, "%s",
                          refusal.message[0] ? refusal.message : "sent a frame that nobody expects");
        return false;
    }
    w->in_frame = true;
    w->dropping = answer == TDI_DROP;
    w->frame = *frame;
    w->copied = 0;
    return true;
}

static void end_frame(tdi_ucx_wire *w)
{
    const tdi_sinks *sinks = &w->fabric->sinks;
    w->in_frame = false;
    w->fabric->moved = true;
    if (!w->dropping)
        sinks->arrived(sinks->user, w->peer, &w->frame, w->place);
}

static void copy(tdi_ucx_wire *w, const void *from, size_t size)
{
    if (!w->dropping && size)
        memcpy((char *)w->place + w->copied, from, size);
    w->copied += size;
}

/* Each of these deals with a message, of whose frame the sink has been asked. True: it is done with. */

static bool take_data(tdi_ucx_wire *w, const tdi_ucx_incoming *in)
{
    bool fits = in->message.frame.length == w->frame.length && in->message.position == w->copied &&
                in->size <= w->frame.length - w->copied && (in->size || !w->frame.length);
    if (!fits) {
        tdi_ucx_wire_fail(w, TD_INVALID_ARGUMENT, "sent pieces that make no frame");
        return false;
    }
    copy(w, in->data, in->size);
    if (w->copied == w->frame.length)
        end_frame(w);
    return true;
}

static void say_closed(tdi_ucx_wire *w)
{
    w->inbox->said_bye = true;
    tdi_ucx_wire_fail(w, TD_IO, "has closed the connection");
}

static bool take_seen(tdi_ucx_wire *w, const tdi_ucx_incoming *in, size_t share)
{
    const tdi_ucx_message *message = &in->message;
    const tdi_ucx_seen *seen = message->memory < w->seen.count ? &w->seen.at[message->memory] : NULL;
    bool fits =
        seen && seen->at && message->position <= seen->size && message->frame.length <= seen->size - message->position;
    if (!tdi_ucx_wire_is_open(w)) {
        say_closed(w);
        return false;
    }
    if (!fits) {
        tdi_ucx_wire_fail(w, TD_INVALID_ARGUMENT, "sent a frame that lies in no memory of its own");
        return false;
    }
    size_t left = w->dropping ? 0 : message->frame.length - w->copied;
    copy(w, seen->at + message->position + w->copied, left < share ? left : share);
    if (left > share)
        return false;
    if (!w->dropping && !tdi_ucx_wire_is_open(w)) {
        say_closed(w);
        return false;
    }
    w->hurries = true;
    end_frame(w);
    return true;
}

static bool take_memory(tdi_ucx_wire *w, const tdi_ucx_incoming *in)
{
    const tdi_ucx_api *api = w->fabric->api;
    tdi_ucx_seen seen = {.base = in->message.position, .size = in->message.size};
    void *at = NULL;
    if (in->message.memory != w->seen.count) {
        tdi_ucx_wire_fail(w, TD_INVALID_ARGUMENT, "told of its memory out of order");
        return false;
    }
    if (in->size && api->ucp_ep_rkey_unpack(w->endpoint, in->data, &seen.key) != UCS_OK)
        seen.key = NULL;
    bool shown = seen.key && api->ucp_rkey_ptr(seen.key, seen.base, &at) == UCS_OK;
    seen.at = shown && tdi_ucx_wire_is_open(w) ? at : NULL; /* else it may be something else by now */
    if (tdi_push(&w->seen, seen))
        return true;
    if (seen.key)
        api->ucp_rkey_destroy(seen.key);
    tdi_ucx_wire_fail(w, TD_NO_MEMORY, "out of memory");
    return false;
}

static bool take_first(tdi_ucx_wire *w, size_t share)
{
    tdi_ucx_incoming *in = &w->inbox->ring[w->inbox->first];
    if (in->message.what == TDI_UCX_MEMORY)
        return take_memory(w, in);
    if (!w->in_frame && !begin_frame(w, &in->message.frame))
        return false;
    return in->message.what == TDI_UCX_SEEN ? take_seen(w, in, share) : take_data(w, in);
}

void tdi_ucx_inbox_take(tdi_ucx_wire *w)
{
    size_t share = TDI_UCX_SHARE;
    while (w->state == TDI_UCX_OPEN && w->inbox->count && share) {
        size_t size = w->inbox->ring[w->inbox->first].size;
        if (!take_first(w, share))
            break;
        drop_first(w->fabric, w->inbox);
        share -= size < share ? size : share;
    }
}

bool tdi_ucx_inbox_has_work(const tdi_ucx_wire *w)
{
    return w->inbox->count ? !w->held : w->inbox->said_bye;
}
