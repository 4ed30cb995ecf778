#ifndef HOST_CPU_SLOT_H
#define HOST_CPU_SLOT_H

/* The slots of a link: the sender fills them in turn, the receiver empties them. */

#include "host/cpu/connection.h"

/* Is the sender's next slot free, the receiver's filled? */
bool cpu_slot_is_free(struct cpu_connection *c);
bool cpu_slot_is_filled(struct cpu_connection *c);

/* Has the receiver emptied all of the sender's slots? */
bool cpu_slot_is_drained(struct cpu_connection *c);

/* The memory of the next slot, as the protocol (CPU_LL and so on) uses it. */
char *cpu_slot_data(const struct cpu_connection *c, int protocol);

/* The filled slot's bytes and mark, as given to cpu_slot_fill. */
uint32_t cpu_slot_bytes(const struct cpu_connection *c);
uint16_t cpu_slot_mark(const struct cpu_connection *c);

/* Hands the slot to the other end. If it sleeps, it learns of it by cpu_slot_tell: once for
   several slots, as that costs a memory fence. */
void cpu_slot_fill(struct cpu_connection *c, uint32_t bytes, uint16_t mark);
void cpu_slot_empty(struct cpu_connection *c);
void cpu_slot_tell(struct cpu_connection *const *ends, int count);

#endif
