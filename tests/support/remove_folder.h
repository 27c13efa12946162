/* remove_folder.h - removes a test's folder and everything in it. */
#ifndef TEST_SUPPORT_REMOVE_FOLDER_H
#define TEST_SUPPORT_REMOVE_FOLDER_H

int remove_folder(const char *path); /* 0 on success */

#endif
