/* SPDX-License-Identifier: MIT */
/* files: what the files behind this process's managed memory hold. */
#ifndef NB_TESTS_LIVE_FILES_H
#define NB_TESTS_LIVE_FILES_H

/* KiB that they take (st_blocks), found in the descriptors of all threads, the helpers' too; -1:
 * there is no such file. */
long files_kib(void);

#endif
