/* A few processes by hand: what each step of forming a group, losing, joining and leaving says and asks for. The
 * simulator (tests/sim) does the rest. Messages are carried at once, in order; time moves when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/membership.h"

enum { MOST = 4, QUEUE = 4096 };

static const char *const names[MOST] = {"chief (a:1)", "worker 0 (b:1)", "worker 1 (c:1)", "evaluator (d:1)"};

typedef struct post {
    int from, to;
    tdi_frame frame;
    unsigned char payload[TDI_MESSAGE_BYTES];
} post;

/* All processes, and what they have asked for and said. */
typedef struct group {
    int tasks;
    tdi_membership *m[MOST];
    bool linked[MOST][MOST];
    double now;
    uint32_t step[MOST];
    bool pauses[MOST];
    post *queue;
    int first, count;
    int seen[MOST][TDI_DO_PROVE + 1]; /* actions */
    int from[MOST];                   /* the donor of the last view */
    bool enough[MOST];
    char last[MOST][400]; /* sentence */
} group;

static tdi_actions out;

static void obey(group *g, int self);

static void post_all(group *g, int self, const tdi_action *action)
{
    for (int t = tdi_lowest_task(action->to); t >= 0; t = tdi_next_task(action->to, t)) {
        assert_true(g->first + g->count < QUEUE);
        post *p = &g->queue[g->first + g->count++];
        p->from = self;
        p->to = t;
        p->frame = action->frame;
        memcpy(p->payload, action->payload, action->frame.length);
    }
}

static void stop(group *g, int self)
{
    tdi_membership_stopped(g->m[self], g->step[self], g->now, &out);
    obey(g, self);
}

static void form(group *g, int self, const tdi_action *action)
{
    const tdi_view *view = tdi_membership_view(g->m[self]);
    g->from[self] = action->from;
    g->enough[self] = action->enough;
    if (!tdi_has_task(view->members, self))
        return;
    g->step[self] = view->step;
    tdi_membership_ready(g->m[self], g->now, &out);
    obey(g, self);
}

static void do_action(group *g, int self, const tdi_action *action)
{
    g->seen[self][action->kind]++;
    if (action->kind == TDI_DO_SEND)
        post_all(g, self, action);
    else if (action->kind == TDI_DO_STOP || action->kind == TDI_DO_OUT)
        stop(g, self);
    else if (action->kind == TDI_DO_PAUSE)
        g->pauses[self] = true;
    else if (action->kind == TDI_DO_VIEW)
        form(g, self, action);
    else if (action->kind == TDI_DO_LOST || action->kind == TDI_DO_SLOW || action->kind == TDI_DO_WAIT)
        strcpy(g->last[self], action->sentence);
}

static void obey(group *g, int self)
{
    int count = out.count;
    tdi_action *list = malloc(((size_t)count + 1) * sizeof *list);
    assert_non_null(list);
    memcpy(list, out.at, (size_t)count * sizeof *list);
    out.count = 0;
    for (int i = 0; i < count; i++)
        do_action(g, self, &list[i]);
    free(list);
}

static void carry(group *g)
{
    while (g->count > 0) {
        post p = g->queue[g->first++];
        g->count--;
        if (!g->m[p.to] || !g->linked[p.from][p.to])
            continue;
        assert_int_equal(tdi_membership_receive(g->m[p.to], p.from, &p.frame, p.payload, g->now, &out, NULL), TD_OK);
        obey(g, p.to);
    }
    g->first = 0;
}

static void run_for(group *g, double seconds)
{
    for (double until = g->now + seconds; g->now < until; g->now += 0.05) {
        for (int t = 0; t < g->tasks; t++)
            if (g->m[t]) {
                tdi_membership_tick(g->m[t], g->now, &out);
                obey(g, t);
                carry(g);
            }
    }
}

static void link_one(group *g, int a, int b)
{
    g->linked[a][b] = true;
    tdi_membership_link_up(g->m[a], b, tdi_membership_incarnation(g->m[b]), g->now, &out);
    obey(g, a);
}

static void start(group *g, int task, uint64_t incarnation, tdi_task_set trains)
{
    tdi_membership_settings settings = {.self = task,
                                        .tasks = g->tasks,
                                        .trains = trains,
                                        .incarnation = incarnation,
                                        .neighbours = 0x7,
                                        .names = names};
    assert_int_equal(tdi_membership_create(&settings, g->now, &g->m[task], NULL), TD_OK);
    for (int t = 0; t < g->tasks; t++)
        if (t != task && g->m[t]) {
            link_one(g, task, t);
            link_one(g, t, task);
        }
    carry(g);
}

static void kill(group *g, int task)
{
    tdi_membership_free(g->m[task]);
    g->m[task] = NULL;
    for (int t = 0; t < g->tasks; t++)
        if (g->m[t] && g->linked[t][task]) {
            g->linked[t][task] = g->linked[task][t] = false;
            tdi_membership_link_down(g->m[t], task, g->now, &out);
            obey(g, t);
        }
    carry(g);
}

/* The leader has asked for a pause: all end training after the same step. */
static void pause_all(group *g)
{
    uint32_t step = 0;
    for (int t = 0; t < g->tasks; t++)
        if (g->m[t] && tdi_membership_leads(g->m[t]))
            step = g->step[t] + 1;
    for (int t = g->tasks - 1; t >= 0; t--)
        if (g->m[t] && tdi_has_task(tdi_membership_view(g->m[t])->members, t)) {
            g->step[t] = step;
            g->pauses[t] = false;
            stop(g, t);
        }
    carry(g);
}

static group *make_group(int tasks, tdi_task_set trains)
{
    group *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->queue = calloc(QUEUE, sizeof *g->queue);
    assert_non_null(g->queue);
    g->tasks = tasks;
    for (int t = 0; t < tasks; t++)
        start(g, t, 1000, trains);
    run_for(g, 0.3);
    return g;
}

static void free_group(group *g)
{
    for (int t = 0; t < g->tasks; t++)
        tdi_membership_free(g->m[t]);
    free(g->queue);
    free(g);
}

static void expect_members(group *g, tdi_task_set members, uint32_t step)
{
    for (int t = tdi_lowest_task(members); t >= 0; t = tdi_next_task(members, t)) {
        const tdi_view *view = tdi_membership_view(g->m[t]);
        assert_int_equal(view->members, members);
        assert_int_equal(view->step, step);
        assert_true(tdi_view_is_sound(view));
        assert_true(tdi_membership_leads(g->m[t]) == (t == tdi_lowest_task(members)));
    }
}

static void all_meet_and_take_the_chiefs_state(void **state)
{
    (void)state;
    group *g = make_group(4, 0x7);
    expect_members(g, 0x7, 0);
    assert_int_equal(tdi_membership_view(g->m[3])->witnesses, 0x8);
    assert_int_equal(tdi_membership_view(g->m[0])->voters, 0xf);
    assert_int_equal(g->from[0], TDI_NO_TASK);
    assert_int_equal(g->from[1], 0);
    assert_int_equal(g->from[2], 0);
    free_group(g);
}

static void a_death_is_said_and_the_others_go_on(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    tdi_progress at = {.step = 812, .phase = TDI_PHASE_EXCHANGE, .done = 3, .of = 5};
    for (int t = 0; t < 3; t++) {
        g->step[t] = t == 1 ? 813 : 812; /* one has all of the step already */
        at.step = g->step[t];
        tdi_membership_progress(g->m[t], &at);
    }
    run_for(g, 0.15);
    kill(g, 2);
    assert_string_equal(g->last[0], "worker 1 (c:1) has closed its connection: lost at step 812, gradients 3 of 5 "
                                    "under way");
    expect_members(g, 0x3, 813);
    assert_int_equal(g->from[0], 1); /* and gives it to the other */
    assert_int_equal(g->from[1], TDI_NO_TASK);
    free_group(g);
}

static void silence_is_said_within_a_second(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    for (int t = 0; t < 2; t++)
        g->linked[t][2] = g->linked[2][t] = false; /* the wire is cut: nobody closes anything */
    run_for(g, 0.85);
    assert_non_null(strstr(g->last[0], "worker 1 (c:1) has not answered for 0."));
    expect_members(g, 0x3, 0);
    assert_int_equal(tdi_membership_view(g->m[0])->strangers, 0x4);
    run_for(g, 1);
    assert_int_equal(tdi_membership_view(g->m[2])->members, 0x7); /* it waits, and says why */
    assert_non_null(strstr(g->last[2], "worker 1 (c:1) waits: 1 of 3 votes are here, and chief (a:1), worker 0 (b:1) "
                                       "may still train"));
    assert_true(g->seen[2][TDI_DO_PROVE] > 0);
    free_group(g);
}

static void a_worker_of_two_waits_for_proof(void **state)
{
    (void)state;
    group *g = make_group(2, 0x3);
    kill(g, 0);
    run_for(g, 2);
    assert_non_null(strstr(g->last[1], "--on-split continue"));
    assert_int_equal(tdi_membership_view(g->m[1])->members, 0x3);
    tdi_membership_gone(g->m[1], 0, 1000, g->now, &out); /* its port refuses */
    obey(g, 1);
    expect_members(g, 0x2, 0);
    free_group(g);
}

static void a_witness_decides(void **state)
{
    (void)state;
    group *g = make_group(4, 0x3); /* the chief and one worker train */
    g->linked[0][1] = g->linked[1][0] = g->linked[0][2] = g->linked[2][0] = g->linked[0][3] = g->linked[3][0] = false;
    run_for(g, 1.2);
    expect_members(g, 0x2, 0);
    free_group(g);
}

static void who_comes_back_joins_between_two_steps(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    kill(g, 2);
    expect_members(g, 0x3, 0);
    int stops = g->seen[0][TDI_DO_STOP] + g->seen[1][TDI_DO_STOP];
    start(g, 2, 2000, 0x7);
    run_for(g, 0.3);
    assert_true(g->pauses[0]);
    pause_all(g);
    expect_members(g, 0x7, 1);
    assert_int_equal(g->seen[0][TDI_DO_STOP] + g->seen[1][TDI_DO_STOP], stops); /* no step was broken */
    assert_int_equal(g->from[2], 1);                                            /* not the leader */
    run_for(g, 0.5);
    assert_int_equal(tdi_membership_view(g->m[0])->voters, 0x7); /* it has got its vote meanwhile */
    assert_int_equal(tdi_membership_view(g->m[2])->since, tdi_membership_view(g->m[0])->since);
    assert_int_equal(g->seen[0][TDI_DO_STOP] + g->seen[1][TDI_DO_STOP], stops);
    free_group(g);
}

static void who_leaves_costs_no_step(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    tdi_membership_leave(g->m[0], g->now, &out); /* the leader itself */
    obey(g, 0);
    run_for(g, 0.2);
    assert_true(g->pauses[0]);
    pause_all(g);
    assert_int_equal(g->seen[0][TDI_DO_LEFT], 1);
    expect_members(g, 0x6, 1);
    assert_int_equal(g->seen[1][TDI_DO_STOP] + g->seen[2][TDI_DO_STOP], 0);
    assert_int_equal(g->seen[1][TDI_DO_LOST], 0);
    free_group(g);
}

/* Two that do not reach each other: the later goes, though the leader hears both. */
static void of_two_that_are_cut_the_later_goes(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    g->linked[1][2] = g->linked[2][1] = false;
    run_for(g, 0.9);
    expect_members(g, 0x3, 0);
    assert_int_equal(tdi_membership_view(g->m[2])->generation, 0);
    assert_non_null(strstr(g->last[0], "worker 1 (c:1) is left out at step 0: it and another member do not reach"));
    run_for(g, 1);
    expect_members(g, 0x3, 0); /* and is not let in before they do */
    free_group(g);
}

static void a_stuck_wire_is_a_loss(void **state)
{
    (void)state;
    group *g = make_group(3, 0x7);
    tdi_membership_wire(g->m[1], 2, true, g->now, &out);
    obey(g, 1);
    tdi_membership_wire(g->m[2], 1, true, g->now, &out);
    obey(g, 2);
    carry(g);
    run_for(g, 0.2);
    expect_members(g, 0x3, 0);
    free_group(g);
}

/* On one host a stopped process is proved gone; when it wakes it knows that it may have been. */
static void who_was_stopped_comes_back_as_another(void **state)
{
    (void)state;
    group *g = make_group(2, 0x3);
    tdi_membership *chief = g->m[0];
    g->m[0] = NULL; /* SIGSTOP: its connections stay open */
    run_for(g, 1);
    tdi_membership_gone(g->m[1], 0, 1000, g->now, &out);
    obey(g, 1);
    expect_members(g, 0x2, 0);
    g->m[0] = chief;
    run_for(g, 0.3);
    assert_true(tdi_membership_incarnation(chief) > 1000);
    assert_int_equal(g->seen[0][TDI_DO_OUT], 1);
    assert_true(g->pauses[1]);
    pause_all(g);
    expect_members(g, 0x3, 1);
    assert_int_equal(g->from[0], 1);
    free_group(g);
}

static void a_split_continues_where_the_user_says_so(void **state)
{
    (void)state;
    group *g = make_group(2, 0x3);
    tdi_membership_settings settings = {.self = 1,
                                        .tasks = 2,
                                        .trains = 0x3,
                                        .incarnation = 2000,
                                        .split_continues = true,
                                        .min_workers = 2,
                                        .names = names};
    kill(g, 1);
    run_for(g, 0.5);
    assert_int_equal(tdi_membership_create(&settings, g->now, &g->m[1], NULL), TD_OK);
    link_one(g, 0, 1);
    link_one(g, 1, 0);
    carry(g);
    run_for(g, 0.3);
    pause_all(g);
    run_for(g, 0.5);
    expect_members(g, 0x3, 1);
    kill(g, 0); /* without a proof */
    run_for(g, 0.5);
    assert_int_equal(tdi_membership_view(g->m[1])->members, 0x3);
    run_for(g, 1.5);
    expect_members(g, 0x2, 1);
    assert_false(g->enough[1]); /* it goes on, and waits for a second worker */
    free_group(g);
}

static void frames_of_no_cluster_of_ours_are_refused(void **state)
{
    (void)state;
    group *g = make_group(2, 0x3);
    static unsigned char payload[TDI_MESSAGE_BYTES];
    tdi_message say = {.kind = TDI_SAY_COMMIT, .next = {.generation = 9, .since = 9, .members = 0x10, .voters = 0x10}};
    tdi_frame frame;
    tdi_error error = {0};
    say.next.donor = 4;
    say.next.incarnation[4] = 1;
    tdi_message_encode(&say, &frame, payload);
    assert_int_equal(tdi_membership_receive(g->m[0], 1, &frame, payload, g->now, &out, &error), TD_INVALID_ARGUMENT);
    assert_string_equal(error.message, "COMMIT: its view has task 4, and the cluster has 2 tasks");
    tdi_membership *none;
    tdi_membership_settings many = {.tasks = 65};
    tdi_error too_many = {0};
    assert_int_equal(tdi_membership_create(&many, 0, &none, &too_many), TD_INVALID_ARGUMENT);
    assert_string_equal(too_many.message, "cluster: it has 65 tasks; expected 1 to 64");
    free_group(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_meet_and_take_the_chiefs_state),
                                       cmocka_unit_test(a_death_is_said_and_the_others_go_on),
                                       cmocka_unit_test(silence_is_said_within_a_second),
                                       cmocka_unit_test(a_worker_of_two_waits_for_proof),
                                       cmocka_unit_test(a_witness_decides),
                                       cmocka_unit_test(who_comes_back_joins_between_two_steps),
                                       cmocka_unit_test(who_leaves_costs_no_step),
                                       cmocka_unit_test(of_two_that_are_cut_the_later_goes),
                                       cmocka_unit_test(a_stuck_wire_is_a_loss),
                                       cmocka_unit_test(who_was_stopped_comes_back_as_another),
                                       cmocka_unit_test(a_split_continues_where_the_user_says_so),
                                       cmocka_unit_test(frames_of_no_cluster_of_ours_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
