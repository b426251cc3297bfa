// Faults, such as an index out of range, that only a running kernel finds. They reach the host
// without a synchronization.
//
// A kernel writes a fault to host memory that the device maps, and continues with an index in
// range. The host looks at that memory when the next kernel is called and whenever it waits for the
// device. It raises the fault under the name of the operator that failed; the context stays usable.
// With CANDELABRA_LAUNCH_BLOCKING=1 the call itself raises it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

enum class FaultKind : int32_t {
  None = 0,
  IndexError = 1,    // "index %d is out of bounds for dimension %d with size %d" as IndexError
  RuntimeIndex = 2,  // the same as RuntimeError (gather, scatter)
  TargetRange = 3,   // "Target %d is out of bounds." as IndexError (nll_loss)
  NotPositive = 4,   // "probability tensor contains either `inf`, `nan` or element < 0"
  Custom = 5         // the text given to fault_sink, as RuntimeError
};

// The fault of one device, in host memory that the device maps.
struct Fault {
  int32_t state;  // 0: none, 1: being written, 2: complete
  FaultKind kind;
  int32_t operator_number;
  int32_t dim;
  int64_t index;
  int64_t size;
};

// The argument with which kernels report faults.
struct FaultSink {
  Fault* fault;
  int32_t operator_number;

#ifdef __CUDACC__
  __device__ void report(FaultKind kind, int64_t index, int dim, int64_t size) const {
    if (atomicCAS_system(&fault->state, 0, 1) != 0) return;  // only the first fault is reported
    fault->kind = kind;
    fault->operator_number = operator_number;
    fault->dim = dim;
    fault->index = index;
    fault->size = size;
    __threadfence_system();
    atomicExch_system(&fault->state, 2);
  }
  // Returns a checked index, counted from the end if negative. If it is out of range, reports it
  // and returns 0.
  __device__ int64_t checked(int64_t index, int dim, int64_t size, bool wraps = true,
                             FaultKind kind = FaultKind::IndexError) const {
    const int64_t wrapped = wraps && index < 0 ? index + size : index;
    if (wrapped >= 0 && wrapped < size) return wrapped;
    report(kind, index, dim, size);
    return 0;
  }
#endif
};

// The sink of a call. `text` is the message of FaultKind::Custom.
FaultSink fault_sink(const Call& call, const char* text = nullptr);
// Throws the fault that a kernel of this device has reported, and clears it.
void raise_fault_of(int device);

}  // namespace candelabra::cuda
