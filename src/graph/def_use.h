/* def_use.h - who reads each value of a graph, through which views, and which nodes belong to each variable.
 *
 * The table is a snapshot: it is right until a node is added, moved or given other inputs. Passes make one where they
 * begin; tdi_schedule_make leaves the finished graph's in graph->def_use, which the planner reads.
 *
 *     const tdi_def_use *table = tdi_def_use_create(graph);
 *     tdi_uses uses = tdi_uses_of(table, node);
 *     for (int i = 0; i < uses.count; i++)
 *         visit(uses.at[i].reader, uses.at[i].input);
 */
#ifndef TDI_GRAPH_DEF_USE_H
#define TDI_GRAPH_DEF_USE_H

#include "graph/graph.h"

/* One input of one node. A node that reads a value twice is there twice. */
typedef struct tdi_use {
    tdi_node *reader;
    int input;
} tdi_use;

typedef struct tdi_uses {
    const tdi_use *at; /* by the reader's id, then by input */
    int count;
} tdi_uses;

typedef struct tdi_node_list {
    tdi_node *const *at; /* by id */
    int count;
} tdi_node_list;

/* The table lives in the graph's arena. NULL when memory is out. It costs one walk over the graph. */
tdi_def_use *tdi_def_use_create(const tdi_graph *graph);

/* Inputs that are the node itself. Dead nodes are readers too: the scheduler alone knows which nodes are live. */
tdi_uses tdi_uses_of(const tdi_def_use *table, const tdi_node *node);
/* Inputs of computing nodes (no views) that show the node's bytes: the node itself or a view of it. A view has none:
 * its bytes are its root's. */
tdi_uses tdi_uses_of_bytes(const tdi_def_use *table, const tdi_node *node);
/* The inputs and the graph's outputs that are the node: 1 means that its only reader may take it over. */
int tdi_use_count(const tdi_def_use *table, const tdi_node *node);

/* The nodes that name a variable: its parameter and slots, its gradient, what reduces and updates it. */
tdi_node_list tdi_nodes_of_variable(const tdi_def_use *table, const tdi_variable *variable);

/* Does the node write input `i`? An update writes its variable's slots, an op with an extra output that output. */
bool tdi_writes_input(const tdi_node *node, int i);

#endif
