#ifndef HOST_CPU_TUNER_LIBRARY_H
#define HOST_CPU_TUNER_LIBRARY_H

/* Finds a plugin's shared object in NCCL's search order. */

/* `name` is NCCL_TUNER_PLUGIN or NULL. What was not found is told in the log; NULL then.
 *path is the file that was loaded, to be freed. */
void *cpu_tuner_library_open(const char *name, char **path);

#endif
