/* meeting.c - the meeting's thread, and what its members tell each other. */
#define _GNU_SOURCE
#include "cluster/meeting.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "cluster/meeting_struct.h"

static const double patience = 2, repetition = 30; /* seconds until it is said who is waited for, and again */
static const double longest_leave = 1;

/* ---- the end ---- */

static bool is_over(const tdi_meeting *meeting)
{
    return meeting->why.status != TD_OK;
}

/* With the lock held, so that who is told cannot go meanwhile. */
static void tell(tdi_meeting *meeting)
{
    if (is_over(meeting) && meeting->lost && !meeting->ending)
        meeting->lost(meeting->user, &meeting->why);
}

void tdi_meeting_note(const tdi_meeting *meeting, td_cluster_event_kind kind, int member, const char *sentence)
{
    if (meeting->spec.on_event)
        meeting->spec.on_event(meeting->spec.user, &(td_cluster_event){.kind = kind,
                                                                       .task = member,
                                                                       .seconds = tdi_seconds() - meeting->began,
                                                                       .sentence = sentence});
}

static void fail_by(tdi_meeting *meeting, int member, const tdi_error *why)
{
    pthread_mutex_lock(&meeting->lock);
    bool first = !is_over(meeting);
    if (first) {
        meeting->why = *why;
        tell(meeting);
    }
    bool lost = first && meeting->complete && !meeting->ending;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
    if (lost)
        tdi_meeting_note(meeting, TD_CLUSTER_LOST, member, why->message);
}

void tdi_meeting_fail(tdi_meeting *meeting, const tdi_error *why)
{
    fail_by(meeting, -1, why);
}

void tdi_meeting_tell(tdi_meeting *meeting, void (*lost)(void *user, const tdi_error *why), void *user)
{
    if (!meeting)
        return;
    pthread_mutex_lock(&meeting->lock);
    meeting->lost = lost;
    meeting->user = user;
    tell(meeting);
    pthread_mutex_unlock(&meeting->lock);
}

void tdi_meeting_lose(tdi_meeting *meeting, int member, const tdi_error *why)
{
    tdi_error lost = {0};
    tdi_link_tell_loss(meeting->members[member].name, why, &lost);
    fail_by(meeting, member, &lost);
}

/* ---- frames ---- */

static tdi_sink_answer place_share(tdi_connection *connection, const tdi_frame *frame, void **place, tdi_error *error)
{
    char *bytes = malloc((size_t)frame->length + 1);
    if (!bytes) {
        tdi_fail(error, TD_NO_MEMORY, "out of memory for %u bytes that are shared", frame->length);
        return TDI_REFUSE;
    }
    bytes[frame->length] = '\0';
    connection->gift = bytes;
    *place = bytes;
    return TDI_TAKE;
}

static tdi_sink_answer place_frame(void *user, int number, const tdi_frame *frame, void **place, tdi_error *error)
{
    const tdi_meeting *meeting = user;
    tdi_connection *connection = meeting->connections.at[number];
    if (connection->greeted && connection->purpose == TDI_BULK_LINK)
        return TDI_HOLD; /* it is for whom the link is handed over to */
    if (connection->greeted && frame->kind == TDI_KIND_SHARE)
        return place_share(connection, frame, place, error);
    return tdi_greeting_place(connection, frame, place, error);
}

static void share_arrived(tdi_connection *connection, const tdi_frame *frame, char *bytes)
{
    tdi_meeting *meeting = connection->meeting;
    connection->gift = NULL;
    pthread_mutex_lock(&meeting->lock);
    bool kept = tdi_push(&meeting->members[connection->member].gifts,
                         ((tdi_gift){frame->id, frame->flags & TDI_SHARE_PARTS, {bytes, frame->length}}));
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
    tdi_error why = {0};
    if (kept)
        return;
    free(bytes);
    tdi_no_memory(&why);
    tdi_meeting_fail(meeting, &why);
}

static void frame_arrived(void *user, int number, const tdi_frame *frame, void *place)
{
    const tdi_meeting *meeting = user;
    tdi_connection *connection = meeting->connections.at[number];
    if (frame->kind == TDI_KIND_SHARE)
        share_arrived(connection, frame, place);
    else
        tdi_greeting_arrived(connection, frame);
}

static void link_lost(void *user, int number, const tdi_error *why)
{
    const tdi_meeting *meeting = user;
    tdi_greeting_lost(meeting->connections.at[number], why);
}

/* ---- the thread ---- */

static bool all_are_there(const tdi_meeting *meeting)
{
    for (int i = 0; i < meeting->spec.members; i++)
        for (int purpose = 0; purpose < TDI_PURPOSES; purpose++)
            if (i != meeting->self && !meeting->members[i].links[purpose])
                return false;
    return true;
}

void tdi_meeting_complete(tdi_meeting *meeting)
{
    pthread_mutex_lock(&meeting->lock);
    if (!meeting->complete && all_are_there(meeting)) {
        for (int i = 0; i < meeting->spec.members; i++) {
            tdi_connection *bulk = meeting->members[i].links[TDI_BULK_LINK];
            if (!bulk)
                continue;
            tdi_link_detach(bulk->link);
            meeting->members[i].bulk = bulk->link;
            bulk->link = NULL;
        }
        meeting->complete = true;
        pthread_cond_broadcast(&meeting->changed);
    }
    pthread_mutex_unlock(&meeting->lock);
}

static bool take_outgoing(tdi_meeting *meeting, tdi_outgoing *next)
{
    pthread_mutex_lock(&meeting->lock);
    bool any = meeting->outgoing.count > 0;
    if (any) {
        *next = meeting->outgoing.at[0];
        memmove(meeting->outgoing.at, meeting->outgoing.at + 1,
                (size_t)--meeting->outgoing.count * sizeof *meeting->outgoing.at);
    }
    pthread_mutex_unlock(&meeting->lock);
    return any;
}

static void send_outgoing(tdi_meeting *meeting)
{
    for (tdi_outgoing next; take_outgoing(meeting, &next); free(next.bytes))
        for (int i = 0; i < meeting->spec.members; i++)
            if (i != meeting->self && meeting->members[i].links[TDI_CONTROL_LINK])
                tdi_link_send_copy(meeting->members[i].links[TDI_CONTROL_LINK]->link, &next.frame, next.bytes);
}

static bool any_is_open(const tdi_meeting *meeting)
{
    for (int i = 0; i < meeting->connections.count; i++) {
        const tdi_link *link = meeting->connections.at[i]->link;
        if (link && tdi_link_get_state(link) == TDI_LINK_OPEN)
            return true;
    }
    return false;
}

/* Last words are sent, and the others see that this end is meant. A peer that does not answer is not waited for long.
 */
static void take_leave(tdi_meeting *meeting)
{
    double until = tdi_seconds() + longest_leave;
    for (int i = 0; i < meeting->connections.count; i++) {
        tdi_connection *connection = meeting->connections.at[i];
        connection->calls = false;
        tdi_loop_stop_timer(meeting->loop, &connection->again);
        if (connection->link && tdi_link_get_state(connection->link) == TDI_LINK_OPEN)
            tdi_link_end(connection->link);
    }
    while (any_is_open(meeting) && tdi_seconds() < until && tdi_loop_run(meeting->loop, 0.05, NULL) == TD_OK)
        continue;
}

static void *keep_links(void *argument)
{
    tdi_meeting *meeting = argument;
    tdi_error why = {0};
    while (!atomic_load(&meeting->quits)) {
        if (tdi_loop_run(meeting->loop, -1, &why) != TD_OK)
            break;
        tdi_meeting_complete(meeting);
        send_outgoing(meeting);
    }
    if (why.status != TD_OK)
        tdi_meeting_fail(meeting, &why);
    send_outgoing(meeting);
    take_leave(meeting);
    return NULL;
}

/* ---- opening ---- */

/* Whoever waits next logs it, in the context's own thread. */
void tdi_meeting_note_refused(void *user, const tdi_error *why)
{
    tdi_meeting *meeting = user;
    pthread_mutex_lock(&meeting->lock);
    meeting->refused = *why;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}

/* The address of this host from which an endpoint is reached. Nothing is sent. */
static bool find_address_towards(const tdi_endpoint *endpoint, tdi_address *address)
{
    tdi_endpoint from = {.size = sizeof from.at};
    char text[TDI_ENDPOINT_TEXT];
    int fd = socket(endpoint->at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&endpoint->at, endpoint->size) == 0 &&
                 getsockname(fd, (struct sockaddr *)&from.at, &from.size) == 0;
    if (fd >= 0)
        close(fd);
    if (found)
        tdi_endpoint_text(&from, text);
    return found && tdi_address_parse(text, address, NULL) == TD_OK;
}

/* For a task without an address of its own: where the first task sees it, which tells the others. */
static td_status choose_address(const tdi_meeting *meeting, tdi_address *address, tdi_error *error)
{
    tdi_address first;
    tdi_endpoints endpoints;
    bool found = false;
    TDI_TRY(tdi_address_parse(meeting->spec.config->tasks[0].address, &first, error));
    TDI_TRY(tdi_address_resolve(&first, &endpoints, error));
    for (int i = 0; i < endpoints.count && !found; i++)
        found = find_address_towards(&endpoints.at[i], address);
    address->port = 0;
    if (found)
        return TD_OK;
    return tdi_fail(error, TD_NOT_FOUND, "this host has no way to %s (%s); give the address to listen on by --bind",
                    meeting->spec.config->tasks[0].address, strerror(errno));
}

/* The address to listen on: the task's own unless `bind` says another, whose port may be left out. */
static td_status listening_address(const tdi_meeting *meeting, tdi_address *address, tdi_error *error)
{
    const char *own = meeting->spec.config->tasks[meeting->self].address, *bind = meeting->spec.bind;
    tdi_address wished = {0};
    if (own)
        TDI_TRY(tdi_address_parse(own, &wished, error));
    else if (!bind)
        TDI_TRY(choose_address(meeting, &wished, error));
    if (bind && tdi_address_parse(bind, address, NULL) == TD_OK)
        return TD_OK;
    *address = wished;
    if (bind && snprintf(address->host, sizeof address->host, "%s", bind) >= (int)sizeof address->host)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "bind: '%.40s...' is no address", bind);
    return TD_OK;
}

static td_status listen_for_members(tdi_meeting *meeting, tdi_error *error)
{
    tdi_address address;
    tdi_endpoint bound;
    int fd;
    TDI_TRY(listening_address(meeting, &address, error));
    if (tdi_address_listen(&address, &fd, &bound, error) != TD_OK) {
        tdi_error_prefix(error, "%s cannot listen", meeting->members[meeting->self].name);
        return error->status;
    }
    meeting->own.port = tdi_endpoint_port(&bound);
    return tdi_listener_create(&(tdi_listener_spec){.loop = meeting->loop,
                                                    .security = meeting->spec.security,
                                                    .fd = fd,
                                                    .user = meeting,
                                                    .opened = tdi_greeting_opened,
                                                    .refused = tdi_meeting_note_refused},
                               &meeting->listener, error);
}

static bool make_members(tdi_meeting *meeting)
{
    meeting->members = calloc((size_t)meeting->spec.members, sizeof *meeting->members);
    for (int i = 0; meeting->members && i < meeting->spec.members; i++) {
        char task[TDI_TASK_NAME];
        const char *address = meeting->spec.config->tasks[i].address;
        tdi_member_state *member = &meeting->members[i];
        tdi_task_name(&meeting->spec.config->tasks[i], task);
        snprintf(member->name, sizeof member->name, address ? "%s (%s)" : "%s", task, address);
        member->address = address ? strdup(address) : NULL;
        if (address && !member->address)
            return false;
    }
    return meeting->members;
}

static void introduce(tdi_meeting *meeting)
{
    tdi_hello *own = &meeting->own;
    *own = (tdi_hello){.protocol = TDI_HELLO_PROTOCOL, .task = meeting->self};
    snprintf(own->version, sizeof own->version, "%s", td_version());
    tdi_hello_cluster(meeting->spec.config, own->cluster);
    tdi_hello_host(own->host);
    if (getrandom(&own->incarnation, sizeof own->incarnation, 0) != sizeof own->incarnation)
        own->incarnation = (uint64_t)getpid();
    own->incarnation = (own->incarnation >> 1) | 1; /* JSON's integers have a sign */
}

static void init_waiting(tdi_meeting *meeting)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static td_status start(tdi_meeting *meeting, tdi_error *error)
{
    if (!make_members(meeting))
        return tdi_no_memory(error);
    introduce(meeting);
    TDI_TRY(tdi_loop_create(&meeting->loop, error));
    TDI_TRY(listen_for_members(meeting, error));
    TDI_TRY(tdi_greeting_begin(meeting, error));
    TDI_TRY(tdi_thread_start(&meeting->thread, keep_links, meeting, error));
    meeting->started = true;
    return TD_OK;
}

/* ---- waiting; with the lock held ---- */

/* A tenth of a second at most, so that a stop is seen. */
static void wait_a_little(tdi_meeting *meeting)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until);
}

static td_status check(tdi_meeting *meeting, tdi_error *error)
{
    if (meeting->refused.status != TD_OK)
        tdi_log(meeting->spec.context, TD_LOG_WARNING, "a connection was refused: %s", meeting->refused.message);
    tdi_error_init(&meeting->refused);
    if (!meeting->ending) /* who leaves does so because it was stopped, perhaps */
        TDI_TRY(tdi_check_stop(&meeting->spec.context->stop, error));
    else if (tdi_seconds() > meeting->leaves_at)
        return tdi_fail(error, TD_STOPPED, "the others stay");
    return is_over(meeting) ? tdi_fail(error, meeting->why.status, "%s", meeting->why.message) : TD_OK;
}

static bool is_missing(const tdi_meeting *meeting, int member)
{
    const tdi_member_state *state = &meeting->members[member];
    return member != meeting->self && (!state->links[TDI_CONTROL_LINK] || !state->links[TDI_BULK_LINK]);
}

static const char *last_failure(const tdi_meeting *meeting, int member)
{
    for (int i = 0; i < meeting->connections.count; i++)
        if (meeting->connections.at[i]->calls && meeting->connections.at[i]->member == member)
            return meeting->connections.at[i]->failure;
    return "";
}

/* "worker 1 (10.0.0.3:2222), worker 2", and why the first of them is not there. */
static void list_missing(const tdi_meeting *meeting, char *text, size_t size, const char **failure)
{
    size_t used = 0;
    text[0] = '\0';
    *failure = "";
    for (int i = 0; i < meeting->spec.members && used < size; i++) {
        if (!is_missing(meeting, i))
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", meeting->members[i].name);
        *failure = **failure ? *failure : last_failure(meeting, i);
    }
}

static void say_missing(const tdi_meeting *meeting)
{
    char names[700];
    const char *failure;
    list_missing(meeting, names, sizeof names, &failure);
    tdi_log(meeting->spec.context, TD_LOG_INFO, "%s waits for %s%s%s", meeting->members[meeting->self].name, names,
            *failure ? "; the last attempt: " : "", failure);
}

static td_status fail_by_time(const tdi_meeting *meeting, tdi_error *error)
{
    char names[700];
    const char *failure;
    list_missing(meeting, names, sizeof names, &failure);
    return tdi_fail(error, TD_NOT_FOUND,
                    "%s did not come within %g seconds%s%s; start every task, or wait longer (--start-timeout)", names,
                    meeting->spec.start_timeout, *failure ? "; the last attempt: " : "", failure);
}

static td_status wait_for_all(tdi_meeting *meeting, tdi_error *error)
{
    double began = tdi_seconds(), said = began + patience - repetition;
    td_status status = TD_OK;
    pthread_mutex_lock(&meeting->lock);
    while (!meeting->complete && (status = check(meeting, error)) == TD_OK) {
        double now = tdi_seconds();
        if (now - began > meeting->spec.start_timeout) {
            status = fail_by_time(meeting, error);
            break;
        }
        if (now - said > repetition)
            say_missing(meeting);
        said = now - said > repetition ? now : said;
        wait_a_little(meeting);
    }
    if (status == TD_OK)
        status = check(meeting, error);
    pthread_mutex_unlock(&meeting->lock);
    return status;
}

/* Those who have come already hear why there will be no meeting. They go on waiting for a process that was stopped,
 * which can be started again, or that was one too many. */
static void leave_at_the_door(tdi_meeting *meeting, const tdi_error *why)
{
    if (meeting->started && why->status != TD_STOPPED && !meeting->unwanted)
        tdi_meeting_farewell(meeting, why);
    tdi_meeting_close(meeting);
}

td_status tdi_meeting_open(const tdi_meeting_spec *spec, tdi_meeting **meeting, tdi_error *error)
{
    tdi_meeting *made = calloc(1, sizeof *made);
    *meeting = NULL;
    if (!made)
        return tdi_no_memory(error);
    made->spec = *spec;
    made->self = spec->config->self;
    made->began = tdi_seconds();
    made->sinks = (tdi_sinks){made, place_frame, frame_arrived, NULL, link_lost};
    init_waiting(made);
    td_status status = start(made, error);
    if (status == TD_OK)
        status = wait_for_all(made, error);
    if (status == TD_OK)
        *meeting = made;
    else
        leave_at_the_door(made, error);
    return status;
}

/* ---- sharing ---- */

/* With the lock held. */
static bool post(tdi_meeting *meeting, const tdi_frame *frame, const void *bytes)
{
    char *copy = malloc((size_t)frame->length + 1);
    if (!copy)
        return false;
    if (frame->length)
        memcpy(copy, bytes, frame->length);
    if (tdi_push(&meeting->outgoing, ((tdi_outgoing){*frame, copy})))
        return true;
    free(copy);
    return false;
}

/* A member's gift of this number leaves its list; of one that parts it does not count as one. */
static bool take_gift(tdi_member_state *member, uint32_t number, tdi_shared *to, bool *parts)
{
    for (int i = 0; i < member->gifts.count; i++) {
        if (member->gifts.at[i].number != number)
            continue;
        *to = member->gifts.at[i].shared;
        *parts = member->gifts.at[i].parts;
        member->gifts.at[i] = member->gifts.at[--member->gifts.count];
        return true;
    }
    return false;
}

/* A member that has gone may have given before. */
static td_status await_gift(tdi_meeting *meeting, int member, uint32_t number, tdi_shared *to, tdi_error *error)
{
    bool parts = false;
    while (!take_gift(&meeting->members[member], number, to, &parts)) {
        TDI_TRY(check(meeting, error));
        wait_a_little(meeting);
    }
    if (parts && !meeting->ending)
        return tdi_fail(error, TD_IO, "%s has left; what it said itself tells why", meeting->members[member].name);
    return TD_OK;
}

static td_status take_gifts(tdi_meeting *meeting, uint32_t number, tdi_shared *all, tdi_error *error)
{
    for (int i = 0; i < meeting->spec.members; i++)
        if (i != meeting->self)
            TDI_TRY(await_gift(meeting, i, number, &all[i], error));
    return TD_OK;
}

void tdi_shared_free(tdi_shared *all, int members)
{
    for (int i = 0; i < members; i++) {
        free(all[i].bytes);
        all[i] = (tdi_shared){0};
    }
}

td_status tdi_meeting_share(tdi_meeting *meeting, const void *bytes, size_t size, tdi_shared *all, tdi_error *error)
{
    memset(all, 0, (size_t)meeting->spec.members * sizeof *all);
    if (size > UINT32_MAX - 1)
        return tdi_fail(error, TD_UNSUPPORTED, "%zu bytes are too many for processes to share; 4 GB is the limit",
                        size);
    pthread_mutex_lock(&meeting->lock);
    uint32_t number = ++meeting->shares;
    const tdi_frame frame = {
        .length = (uint32_t)size, .kind = TDI_KIND_SHARE, .flags = meeting->ending ? TDI_SHARE_PARTS : 0, .id = number};
    td_status status = post(meeting, &frame, bytes) ? TD_OK : tdi_no_memory(error);
    tdi_loop_wake(meeting->loop);
    if (status == TD_OK)
        status = take_gifts(meeting, number, all, error);
    pthread_mutex_unlock(&meeting->lock);
    if (status != TD_OK)
        tdi_shared_free(all, meeting->spec.members);
    return status;
}

/* ---- facts, and the end ---- */

tdi_link *tdi_meeting_take_bulk(tdi_meeting *meeting, int member)
{
    tdi_link *link = meeting->members[member].bulk;
    meeting->members[member].bulk = NULL;
    return link;
}

const char *tdi_meeting_name(const tdi_meeting *meeting, int member)
{
    return meeting->members[member].name;
}

bool tdi_meeting_is_neighbour(const tdi_meeting *meeting, int member)
{
    return meeting->members[member].neighbour;
}

void tdi_meeting_farewell(tdi_meeting *meeting, const tdi_error *why)
{
    if (!meeting)
        return;
    const tdi_frame frame = {
        .length = (uint32_t)strlen(why->message), .kind = TDI_KIND_FAREWELL, .flags = (uint16_t)why->status};
    pthread_mutex_lock(&meeting->lock);
    meeting->ending = true;
    meeting->leaves_at = INFINITY;
    (void)post(meeting, &frame, why->message); /* without memory for it the others see that the links end */
    pthread_mutex_unlock(&meeting->lock);
    tdi_loop_wake(meeting->loop);
}

bool tdi_meeting_part(tdi_meeting *meeting, double longest)
{
    if (!meeting || !meeting->started || meeting->ending)
        return true;
    tdi_error why = {0};
    tdi_shared *all = calloc((size_t)meeting->spec.members, sizeof *all);
    pthread_mutex_lock(&meeting->lock);
    meeting->ending = true;
    meeting->leaves_at = tdi_seconds() + longest;
    pthread_mutex_unlock(&meeting->lock);
    if (all && meeting->complete && !is_over(meeting) && tdi_meeting_share(meeting, NULL, 0, all, &why) == TD_OK)
        tdi_shared_free(all, meeting->spec.members);
    free(all);
    return why.status != TD_STOPPED;
}

static void end_thread(tdi_meeting *meeting)
{
    atomic_store(&meeting->quits, true);
    tdi_loop_wake(meeting->loop);
    pthread_join(meeting->thread, NULL);
}

static void free_member(tdi_member_state *member)
{
    for (int i = 0; i < member->gifts.count; i++)
        free(member->gifts.at[i].shared.bytes);
    tdi_vec_free(&member->gifts);
    tdi_link_free(member->bulk);
    free(member->address);
}

void tdi_meeting_close(tdi_meeting *meeting)
{
    if (!meeting)
        return;
    if (meeting->started)
        end_thread(meeting);
    tdi_listener_free(meeting->listener);
    for (int i = 0; i < meeting->connections.count; i++) {
        tdi_connection_end(meeting->connections.at[i]);
        free(meeting->connections.at[i]);
    }
    tdi_vec_free(&meeting->connections);
    for (int i = 0; meeting->members && i < meeting->spec.members; i++)
        free_member(&meeting->members[i]);
    free(meeting->members);
    for (int i = 0; i < meeting->outgoing.count; i++)
        free(meeting->outgoing.at[i].bytes);
    tdi_vec_free(&meeting->outgoing);
    tdi_loop_free(meeting->loop);
    pthread_cond_destroy(&meeting->changed);
    pthread_mutex_destroy(&meeting->lock);
    free(meeting);
}
