/*
 * collectives.h: collectives of a library other than the backend's, for a device type whose backend
 * has none. candelabra-collectives-mpi is one, for host memory.
 *
 * The library exports candelabra_collectives(). candelabra.communication.load_library() opens it,
 * and the core then calls its table of cb_collectives (accelerator.h) for the device type.
 *
 * On a device without streams, `stream` is null, and a collective is done when the function
 * returns. The library may offer the caller other ways to queue it.
 */
#ifndef CANDELABRA_COLLECTIVES_H
#define CANDELABRA_COLLECTIVES_H

#include "candelabra/accelerator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reductions beyond enum cb_reduction, of integers and bools only. */
enum cb_bitwise_reduction { CB_REDUCE_BAND = 5, CB_REDUCE_BOR = 6, CB_REDUCE_BXOR = 7 };

/* What the core does for the library. */
typedef struct cb_collectives_host {
  uint64_t size;
  /* Returns 1 if the user has interrupted the program (Ctrl-C). The function that the core has
   * called then returns CB_CANCELLED. From the thread of that call; it takes the GIL. */
  int32_t (*is_interrupted)(void);
} cb_collectives_host;

typedef struct cb_collectives_library {
  uint64_t size;
  const cb_collectives* collectives;
  const char* (*last_error)(void); /* the message of this thread's last failure */
} cb_collectives_library;

/* The one symbol that the library exports to the core. Both tables live as long as the process. */
typedef const cb_collectives_library* (*cb_collectives_entry)(const cb_collectives_host* host);

#ifdef __cplusplus
}
#endif

#endif
