/* def_use.c - the def-use table: lists of uses one behind the other in one array, and where each node's begins.
 *
 * Two walks over the graph fill each kind of list: the first counts, the second writes. Nodes stand in the order of
 * their ids, so lists are sorted without further work. Variables are numbered as they are met; a lookup is a search
 * among them, as graphs have few. */
#include "graph/def_use.h"

#include "graph/op.h"

typedef struct use_lists {
    int *begin; /* by id: where its list begins; one entry more than nodes */
    tdi_use *at;
} use_lists;

struct tdi_def_use {
    use_lists direct, bytes;
    int *outputs; /* by id: how many of the graph's outputs it is */
    const tdi_variable **variables;
    int n_variables;
    int *variable_begin; /* by a variable's number: where its nodes begin */
    tdi_node **variable_nodes;
};

/* ---- uses ---- */

/* Whose list an input belongs to; NULL: none's. */
typedef const tdi_node *used_by(const tdi_node *reader, int input);

static const tdi_node *used_directly(const tdi_node *reader, int input)
{
    return reader->in[input];
}

static const tdi_node *used_as_bytes(const tdi_node *reader, int input)
{
    return reader->in[input] && !reader->op->view ? tdi_root(reader->in[input]) : NULL;
}

/* Turns counts, entry i at i + 1, into where lists begin. */
static void add_up(int *begin, int count)
{
    for (int i = 0; i < count; i++)
        begin[i + 1] += begin[i];
}

static bool list_uses(const tdi_graph *graph, used_by *used, use_lists *lists)
{
    int count = graph->nodes.count, *next = TDI_NEW_ARRAY(graph->arena, int, count + 1);
    lists->begin = TDI_NEW_ARRAY(graph->arena, int, count + 1);
    if (!next || !lists->begin)
        return false;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < graph->nodes.at[i]->n_in; j++)
            if (used(graph->nodes.at[i], j))
                lists->begin[used(graph->nodes.at[i], j)->id + 1]++;
    add_up(lists->begin, count);
    lists->at = TDI_NEW_ARRAY(graph->arena, tdi_use, lists->begin[count] + 1);
    for (int i = 0; i < count && lists->at; i++)
        for (int j = 0; j < graph->nodes.at[i]->n_in; j++) {
            const tdi_node *node = used(graph->nodes.at[i], j);
            if (node)
                lists->at[lists->begin[node->id] + next[node->id]++] = (tdi_use){graph->nodes.at[i], j};
        }
    return lists->at != NULL;
}

static tdi_uses uses_in(const use_lists *lists, const tdi_node *node)
{
    int begin = lists->begin[node->id];
    return (tdi_uses){lists->at + begin, lists->begin[node->id + 1] - begin};
}

tdi_uses tdi_uses_of(const tdi_def_use *table, const tdi_node *node)
{
    return uses_in(&table->direct, node);
}

tdi_uses tdi_uses_of_bytes(const tdi_def_use *table, const tdi_node *node)
{
    return uses_in(&table->bytes, node);
}

int tdi_use_count(const tdi_def_use *table, const tdi_node *node)
{
    return uses_in(&table->direct, node).count + table->outputs[node->id];
}

/* ---- variables ---- */

/* The variable's number; -1: the graph does not name it. */
static int number_of(const tdi_def_use *table, const tdi_variable *variable)
{
    for (int i = 0; i < table->n_variables; i++)
        if (table->variables[i] == variable)
            return i;
    return -1;
}

static bool list_variables(const tdi_graph *graph, tdi_def_use *table)
{
    int count = graph->nodes.count;
    int *number = TDI_NEW_ARRAY(graph->arena, int, count + 1), *next = TDI_NEW_ARRAY(graph->arena, int, count + 1);
    table->variables = TDI_NEW_ARRAY(graph->arena, const tdi_variable *, count + 1);
    table->variable_begin = TDI_NEW_ARRAY(graph->arena, int, count + 1);
    table->variable_nodes = TDI_NEW_ARRAY(graph->arena, tdi_node *, count + 1);
    if (!number || !next || !table->variables || !table->variable_begin || !table->variable_nodes)
        return false;
    for (int i = 0; i < count; i++) {
        const tdi_variable *variable = graph->nodes.at[i]->variable;
        number[i] = variable ? number_of(table, variable) : -1;
        if (variable && number[i] < 0)
            table->variables[number[i] = table->n_variables++] = variable;
        if (variable)
            table->variable_begin[number[i] + 1]++;
    }
    add_up(table->variable_begin, table->n_variables);
    for (int i = 0; i < count; i++)
        if (number[i] >= 0)
            table->variable_nodes[table->variable_begin[number[i]] + next[number[i]]++] = graph->nodes.at[i];
    return true;
}

tdi_node_list tdi_nodes_of_variable(const tdi_def_use *table, const tdi_variable *variable)
{
    int v = number_of(table, variable);
    if (v < 0)
        return (tdi_node_list){0};
    int begin = table->variable_begin[v];
    return (tdi_node_list){table->variable_nodes + begin, table->variable_begin[v + 1] - begin};
}

/* ---- the table ---- */

tdi_def_use *tdi_def_use_create(const tdi_graph *graph)
{
    tdi_def_use *table = TDI_NEW(graph->arena, tdi_def_use);
    if (!table || !list_uses(graph, used_directly, &table->direct) || !list_uses(graph, used_as_bytes, &table->bytes) ||
        !list_variables(graph, table))
        return NULL;
    table->outputs = TDI_NEW_ARRAY(graph->arena, int, graph->nodes.count + 1);
    for (int i = 0; i < graph->outputs.count && table->outputs; i++)
        table->outputs[graph->outputs.at[i]->id]++;
    return table->outputs ? table : NULL;
}

bool tdi_writes_input(const tdi_node *node, int i)
{
    const tdi_node *in = node->op->view ? NULL : node->in[i];
    return in && (in->op->extra_output || (node->update_phase && in->home == TDI_HOME_SLOT));
}
