/* printable.h - names from files on a terminal: without what it would obey, and in as many columns as it shows. The
 * public td_printable, td_columns and td_pad are in status.h. */
#ifndef TDI_BASE_PRINTABLE_H
#define TDI_BASE_PRINTABLE_H

#include <tandem/status.h>

/* td_printable for a text of lines. */
char *tdi_printable_lines(char *text);

#endif
