#ifndef HOST_CUDA_ELF_H
#define HOST_CUDA_ELF_H

/* A look into a shared library without opening it: no code of it runs. */

#include <stddef.h>

/* Copies the word after `marker`, where a digit follows it, out of the read-only data of
   the 64-bit ELF file ("2.28.9+cuda13.0" after "NCCL version "). 0, or -1: not found. */
int elf_find_version(const char *path, const char *marker, char *word, size_t size);

#endif
