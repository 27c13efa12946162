/* environment.h - environment variables of the command's own. */
#ifndef TOOL_ENVIRONMENT_H
#define TOOL_ENVIRONMENT_H

/* Names on standard error each variable that begins with TANDEM_ and that nothing reads. */
void environment_check(void);

#endif
