/*
 * compile.h: what a backend may do for compiled programs beside its kernels: the extension
 * "compile", which a backend of ABI 2.1 may return. docs/backends.md explains it.
 */
#ifndef CANDELABRA_COMPILE_H
#define CANDELABRA_COMPILE_H

#include "candelabra/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cb_compile {
  uint64_t size; /* sizeof(cb_compile) in the backend's build */
  /* Of a backend whose memory is host memory and whose kernels complete before they return. Runs
   * body on parts of [begin, end), of at least `grain` but the last, on the threads that the
   * backend's kernels use, and returns when all are done. A kernel that a body calls runs on the
   * thread of the body.
   *
   * With it, the core calls the kernels of elementwise operators tile by tile: on contiguous tensors
   * of one dimension, which are a part of what the operator was called with, or on elements that are
   * repeated (stride 0). The backend promises that these kernels need no service of cb_host, and
   * that the bits of an element do not depend on the elements beside it.
   * (optional) each kernel gets whole tensors [any] */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
} cb_compile;

#ifdef __cplusplus
}
#endif

#endif
