/* kept.c: a library with one symbol to know it by. */
extern int rlx_tests_kept;
int rlx_tests_kept = 1;
