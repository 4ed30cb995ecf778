#ifndef HOST_CPU_EVENT_H
#define HOST_CPU_EVENT_H

/* Events as streams see them. */

#include "host/cpu/capture.h"

/* What the stream is given next waits for the event's latest record. */
CUresult cpu_event_join(CUevent event, struct cpu_stream *stream);

#endif
