/* place_output.c - giving a value a home of its own. */
#include "passes/passes.h"

tdi_node *tdi_place_output(tdi_graph *graph, tdi_node *node, tdi_home home, tdi_variable *variable, int slot)
{
    if (!node)
        return NULL;
    if (node->home != TDI_HOME_ACTIVATIONS || node->op->view)
        node = tdi_identity(graph, node);
    if (!node)
        return NULL;
    node->home = home;
    node->variable = variable;
    node->slot = slot;
    return node;
}
