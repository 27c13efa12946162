/* greeting.c - how two processes come to have a link: one calls, both say hello, each compares.
 *
 * A call that nobody answers is made again, with growing pauses. One that is answered by somebody who has another
 * secret, version or cluster ends the meeting: waiting longer would not help. Who calls with another version or cluster
 * ends it too, but once all are there he is turned away, as is who says what is no hello. Where only the first task's
 * address is known, the others listen where they may and say so in their hello; when all have come the first sends a
 * directory. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "cluster/meeting_struct.h"

static const double first_pause = 0.05, longest_pause = 1;

/* ---- connections ---- */

static int number_of(const tdi_connection *connection)
{
    const tdi_meeting *meeting = connection->meeting;
    int number = 0;
    while (meeting->connections.at[number] != connection)
        number++;
    return number;
}

/* Who waits for the meeting looks through the list too. */
static tdi_connection *add_connection(tdi_meeting *meeting, int member, tdi_purpose purpose, bool calls)
{
    tdi_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->meeting = meeting;
    connection->member = member;
    connection->purpose = purpose;
    connection->calls = calls;
    connection->pause = first_pause;
    pthread_mutex_lock(&meeting->lock);
    bool added = tdi_push(&meeting->connections, connection);
    pthread_mutex_unlock(&meeting->lock);
    if (added)
        return connection;
    free(connection);
    return NULL;
}

static void drop_link(tdi_connection *connection)
{
    tdi_link_free(connection->link);
    free(connection->heard);
    free(connection->gift);
    connection->link = NULL;
    connection->heard = NULL;
    connection->gift = NULL;
    connection->greeted = false;
}

void tdi_connection_end(tdi_connection *connection)
{
    tdi_loop_stop_timer(connection->meeting->loop, &connection->again);
    connection->calls = false;
    drop_link(connection);
}

static void fail_by_memory(tdi_meeting *meeting)
{
    tdi_error why = {0};
    tdi_no_memory(&why);
    tdi_meeting_fail(meeting, &why);
}

/* ---- hellos ---- */

static void say_hello(tdi_connection *connection)
{
    tdi_hello own = connection->meeting->own;
    own.purpose = connection->purpose;
    char *text = tdi_hello_write(&own);
    if (text)
        tdi_link_send_copy(connection->link, &(tdi_frame){.length = (uint32_t)strlen(text), .kind = TDI_KIND_HELLO},
                           text);
    else
        fail_by_memory(connection->meeting);
    free(text);
}

/* Tells the other side why it is not wanted, and ends the link in order, so that it hears it. */
static void refuse(tdi_connection *connection, const char *why)
{
    tdi_link_send_copy(connection->link, &(tdi_frame){.length = (uint32_t)strlen(why), .kind = TDI_KIND_REFUSAL}, why);
    tdi_link_end(connection->link);
}

/* A process of the same task that came earlier keeps its place, for both of its links. */
static bool is_taken(const tdi_meeting *meeting, const tdi_connection *connection, const tdi_hello *hello)
{
    for (int purpose = 0; purpose < TDI_PURPOSES; purpose++) {
        const tdi_connection *other = meeting->members[connection->member].links[purpose];
        if (other && other != connection &&
            (other->purpose == connection->purpose || other->hello.incarnation != hello->incarnation))
            return true;
    }
    return false;
}

static void keep_address(tdi_meeting *meeting, const tdi_connection *connection, const tdi_hello *hello)
{
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    tdi_member_state *member = &meeting->members[connection->member];
    char host[INET6_ADDRSTRLEN] = "", text[INET6_ADDRSTRLEN + 16];
    if (member->address || getpeername(tdi_link_descriptor(connection->link), (struct sockaddr *)&from, &size) != 0)
        return;
    bool six = from.ss_family == AF_INET6;
    inet_ntop(from.ss_family,
              six ? (void *)&((struct sockaddr_in6 *)&from)->sin6_addr
                  : (void *)&((struct sockaddr_in *)&from)->sin_addr,
              host, sizeof host);
    snprintf(text, sizeof text, six ? "[%s]:%d" : "%s:%d", host, hello->port);
    char task[TDI_TASK_NAME];
    member->address = strdup(text);
    snprintf(member->name, sizeof member->name, "%s (%s)",
             tdi_task_name(&meeting->spec.config->tasks[connection->member], task), text);
}

static void say_joined(const tdi_connection *connection)
{
    char sentence[TDI_MEMBER_NAME + 16];
    const tdi_meeting *meeting = connection->meeting;
    snprintf(sentence, sizeof sentence, "%s has joined", meeting->members[connection->member].name);
    if (connection->purpose == TDI_CONTROL_LINK)
        tdi_meeting_note(meeting, TD_CLUSTER_JOINED, connection->member, sentence);
}

static void admit(tdi_connection *connection, const tdi_hello *hello)
{
    tdi_meeting *meeting = connection->meeting;
    pthread_mutex_lock(&meeting->lock);
    tdi_member_state *member = &meeting->members[connection->member];
    connection->greeted = true;
    connection->hello = *hello;
    connection->pause = first_pause;
    member->links[connection->purpose] = connection;
    member->neighbour = strcmp(hello->host, meeting->own.host) == 0;
    keep_address(meeting, connection, hello);
    tdi_link_set_name(connection->link, member->name);
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
    say_joined(connection);
}

static const char *name_of(const tdi_connection *connection)
{
    return connection->member >= 0 ? connection->meeting->members[connection->member].name
                                   : tdi_link_name(connection->link);
}

static bool is_expected(const tdi_connection *connection, const tdi_hello *hello)
{
    return !connection->calls || (hello->task == connection->member && hello->purpose == connection->purpose);
}

static void end_by(tdi_connection *connection, const tdi_error *why)
{
    tdi_meeting_fail(connection->meeting, why);
}

/* A stranger who has the secret, perhaps of another run. He has heard this side's hello, and sees what is wrong. */
static void turn_away(tdi_connection *connection, const tdi_error *why)
{
    tdi_meeting_note_refused(connection->meeting, why);
    tdi_link_end(connection->link);
}

/* Those who are there are not disturbed by who comes late. */
static void object_to(tdi_connection *connection, const tdi_error *why)
{
    if (connection->calls || !connection->meeting->complete)
        end_by(connection, why);
    else
        turn_away(connection, why);
}

static void take_hello(tdi_connection *connection, const tdi_hello *hello)
{
    tdi_meeting *meeting = connection->meeting;
    tdi_error why = {0};
    connection->purpose = connection->calls ? connection->purpose : hello->purpose;
    if (!connection->calls)
        say_hello(connection); /* so that both sides can compare */
    if (tdi_hello_check(hello, &meeting->own, meeting->spec.config->count, name_of(connection), &why) != TD_OK) {
        object_to(connection, &why);
        return;
    }
    if (!is_expected(connection, hello)) {
        char name[TDI_TASK_NAME];
        tdi_fail(&why, TD_INVALID_ARGUMENT,
                 "%s says that it is %s; the addresses of the cluster are not the same for all processes, or two of "
                 "them are one",
                 name_of(connection), tdi_task_name(&meeting->spec.config->tasks[hello->task], name));
        end_by(connection, &why);
        return;
    }
    connection->member = hello->task;
    if (hello->task >= meeting->spec.members || is_taken(meeting, connection, hello)) {
        refuse(connection, hello->task >= meeting->spec.members
                               ? "tasks of its kind take no part in the training"
                               : "another process has that task already; was it started twice?");
        connection->member = -1;
        return;
    }
    admit(connection, hello);
}

static void hello_arrived(tdi_connection *connection, const tdi_frame *frame)
{
    tdi_hello hello;
    tdi_error why = {0};
    if (tdi_hello_read((char *)connection->heard, frame->length, &hello, &why) == TD_OK) {
        take_hello(connection, &hello);
        return;
    }
    tdi_error_prefix(&why, "%s", name_of(connection));
    if (connection->calls)
        end_by(connection, &why);
    else
        turn_away(connection, &why);
}

static void refusal_arrived(tdi_connection *connection, const tdi_frame *frame)
{
    tdi_error why = {0};
    tdi_fail(&why, TD_INVALID_ARGUMENT, "%s refuses this process: %.*s", name_of(connection), (int)frame->length,
             (char *)connection->heard);
    if (!connection->calls) {
        turn_away(connection, &why);
        return;
    }
    connection->meeting->unwanted = true;
    end_by(connection, &why);
}

/* A sentence about one of them, perhaps about who was lost, is passed on as it is. */
static bool names_a_member(const tdi_meeting *meeting, const char *sentence, size_t length)
{
    for (int i = 0; i < meeting->spec.members; i++)
        if (memmem(sentence, length, meeting->members[i].name, strlen(meeting->members[i].name)))
            return true;
    return false;
}

static void farewell_arrived(tdi_connection *connection, const tdi_frame *frame)
{
    tdi_error why = {0};
    const char *sentence = (char *)connection->heard;
    bool names_one = names_a_member(connection->meeting, sentence, frame->length);
    bool is_status = frame->flags && frame->flags != TD_STOPPED; /* this process was not stopped */
    tdi_fail(&why, is_status ? (td_status)frame->flags : TD_IO, "%s%s%.*s", names_one ? "" : name_of(connection),
             names_one ? "" : ": ", (int)frame->length, sentence);
    end_by(connection, &why);
}

/* ---- calls ---- */

static void call(void *user, double now);

static void call_again(tdi_connection *connection, const char *failure)
{
    tdi_meeting *meeting = connection->meeting;
    drop_link(connection);
    pthread_mutex_lock(&meeting->lock);
    snprintf(connection->failure, sizeof connection->failure, "%.199s", failure);
    pthread_mutex_unlock(&meeting->lock);
    tdi_loop_set_timer(meeting->loop, &connection->again, tdi_seconds() + connection->pause);
    connection->pause = connection->pause * 2 < longest_pause ? connection->pause * 2 : longest_pause;
}

static void call_opened(void *user, int number)
{
    const tdi_meeting *meeting = user;
    say_hello(meeting->connections.at[number]);
}

static td_status begin_call(tdi_connection *connection, tdi_error *error)
{
    tdi_address address;
    tdi_endpoints endpoints;
    tdi_meeting *meeting = connection->meeting;
    const tdi_member_state *member = &meeting->members[connection->member];
    int fd;
    TDI_TRY(tdi_address_parse(member->address, &address, error));
    TDI_TRY(tdi_address_resolve(&address, &endpoints, error));
    TDI_TRY(tdi_endpoint_connect(&endpoints.at[connection->tried++ % endpoints.count], &fd, error));
    TDI_TRY(tdi_link_create(meeting->spec.security, fd, TDI_LINK_CLIENT, member->name, &connection->link, error));
    tdi_link_set_sinks(connection->link, &meeting->sinks, number_of(connection), call_opened);
    return tdi_link_attach(connection->link, meeting->loop, error);
}

static void call(void *user, double now)
{
    (void)now;
    tdi_error why = {0};
    tdi_connection *connection = user;
    if (begin_call(connection, &why) != TD_OK)
        call_again(connection, why.message);
}

/* Calls a member, for either purpose, unless that is under way or its address is not known. */
static bool begin_to_call(tdi_meeting *meeting, int member)
{
    for (int i = 0; i < meeting->connections.count; i++)
        if (meeting->connections.at[i]->calls && meeting->connections.at[i]->member == member)
            return true;
    for (int purpose = 0; purpose < TDI_PURPOSES && meeting->members[member].address; purpose++) {
        tdi_connection *connection = add_connection(meeting, member, (tdi_purpose)purpose, true);
        if (!connection)
            return false;
        connection->again = (tdi_timer){.fire = call, .user = connection};
        tdi_loop_set_timer(meeting->loop, &connection->again, tdi_seconds());
    }
    return true;
}

td_status tdi_greeting_begin(tdi_meeting *meeting, tdi_error *error)
{
    for (int member = 0; member < meeting->self; member++)
        if (!begin_to_call(meeting, member))
            return tdi_no_memory(error);
    return TD_OK;
}

/* ---- the directory of addresses ---- */

static bool must_tell(const tdi_meeting *meeting)
{
    bool all = meeting->self == 0 && !meeting->directory_told, any = false;
    for (int i = 1; i < meeting->spec.members && all; i++) {
        all = meeting->members[i].links[TDI_CONTROL_LINK];
        any = any || !meeting->spec.config->tasks[i].address;
    }
    return all && any;
}

static void tell_directory(tdi_meeting *meeting)
{
    json_t *list = json_array();
    for (int i = 0; i < meeting->spec.members; i++)
        json_array_append_new(list, json_string(meeting->members[i].address ? meeting->members[i].address : ""));
    char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    for (int i = 1; i < meeting->spec.members && text; i++)
        tdi_link_send_copy(meeting->members[i].links[TDI_CONTROL_LINK]->link,
                           &(tdi_frame){.length = (uint32_t)strlen(text), .kind = TDI_KIND_DIRECTORY}, text);
    meeting->directory_told = true;
    if (!text)
        fail_by_memory(meeting);
    free(text);
    json_decref(list);
}

static void directory_arrived(tdi_connection *connection, const tdi_frame *frame)
{
    tdi_meeting *meeting = connection->meeting;
    json_t *list = json_loadb((char *)connection->heard, frame->length, 0, NULL);
    pthread_mutex_lock(&meeting->lock);
    for (int i = 1; i < meeting->self; i++) {
        const char *address = json_string_value(json_array_get(list, (size_t)i));
        char task[TDI_TASK_NAME];
        tdi_member_state *member = &meeting->members[i];
        if (!address || member->address)
            continue;
        member->address = strdup(address);
        snprintf(member->name, sizeof member->name, "%s (%s)", tdi_task_name(&meeting->spec.config->tasks[i], task),
                 address);
    }
    pthread_mutex_unlock(&meeting->lock);
    json_decref(list);
    if (tdi_greeting_begin(meeting, NULL) != TD_OK)
        fail_by_memory(meeting);
}

/* ---- sinks ---- */

void tdi_greeting_opened(void *user, tdi_link *link)
{
    tdi_meeting *meeting = user;
    tdi_connection *connection = add_connection(meeting, -1, TDI_CONTROL_LINK, false);
    if (!connection) {
        tdi_link_free(link);
        return;
    }
    connection->link = link;
    tdi_link_set_sinks(link, &meeting->sinks, number_of(connection), NULL);
}

static bool is_a_word(const tdi_connection *connection, const tdi_frame *frame)
{
    switch (frame->kind) {
    case TDI_KIND_HELLO:
        return !connection->greeted && frame->length <= TDI_HELLO_LONGEST;
    case TDI_KIND_FAREWELL:
        return connection->greeted && frame->length <= TDI_HELLO_LONGEST;
    case TDI_KIND_REFUSAL:
        return frame->length <= TDI_HELLO_LONGEST;
    case TDI_KIND_DIRECTORY:
        return connection->greeted && connection->member == 0 && frame->length <= (1 << 20);
    default:
        return false;
    }
}

tdi_sink_answer tdi_greeting_place(tdi_connection *connection, const tdi_frame *frame, void **place, tdi_error *error)
{
    if (!is_a_word(connection, frame)) {
        tdi_fail(error, TD_INVALID_ARGUMENT, "%s: expected a hello, got a frame of kind %d and %u bytes",
                 name_of(connection), frame->kind, frame->length);
        return TDI_REFUSE;
    }
    free(connection->heard);
    connection->heard = malloc((size_t)frame->length + 1);
    if (!connection->heard) {
        tdi_no_memory(error);
        return TDI_REFUSE;
    }
    *place = connection->heard;
    return TDI_TAKE;
}

void tdi_greeting_arrived(tdi_connection *connection, const tdi_frame *frame)
{
    tdi_meeting *meeting = connection->meeting;
    if (frame->kind == TDI_KIND_HELLO)
        hello_arrived(connection, frame);
    else if (frame->kind == TDI_KIND_REFUSAL)
        refusal_arrived(connection, frame);
    else if (frame->kind == TDI_KIND_FAREWELL)
        farewell_arrived(connection, frame);
    else
        directory_arrived(connection, frame);
    if (must_tell(meeting))
        tell_directory(meeting);
}

/* Is it of no use to call again? */
static bool is_final(const tdi_error *why)
{
    return why->status == TD_INVALID_ARGUMENT;
}

static void forget(tdi_connection *connection)
{
    tdi_meeting *meeting = connection->meeting;
    if (connection->member < 0 || !connection->greeted)
        return;
    pthread_mutex_lock(&meeting->lock);
    meeting->members[connection->member].links[connection->purpose] = NULL;
    pthread_mutex_unlock(&meeting->lock);
}

void tdi_greeting_lost(tdi_connection *connection, const tdi_error *why)
{
    tdi_meeting *meeting = connection->meeting;
    if (connection->greeted && meeting->complete) {
        tdi_meeting_lose(meeting, connection->member, why);
        return;
    }
    forget(connection);
    if (connection->calls && !is_final(why))
        call_again(connection, why->message);
    else if (connection->calls)
        tdi_meeting_fail(meeting, why);
    else
        drop_link(connection);
}
