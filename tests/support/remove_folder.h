/* remove_folder.h - a test's folder goes, with all that is in it. */
#ifndef TEST_SUPPORT_REMOVE_FOLDER_H
#define TEST_SUPPORT_REMOVE_FOLDER_H

int remove_folder(const char *path); /* 0: gone */

#endif
