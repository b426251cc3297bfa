#include "vendor/blas.hpp"

#if !CANDELABRA_OPENBLAS
#include <mkl_service.h>

#include "threads/interruption.hpp"
#endif

namespace candelabra::cpu {

#if CANDELABRA_OPENBLAS

void prepare_blas() {
  scipy_openblas_set_num_threads(1);
}

#else

namespace {

// MKL ends the routine if this returns another number than 0. It calls it on threads of its team,
// too, which compute for no kernel of ours.
int report_progress(int*, int*, char*, int) {
  RunningKernel* const kernel = running_kernel();
  return kernel && kernel->is_to_end() ? 1 : 0;
}

}  // namespace

void prepare_blas() {
  mkl_set_progress(report_progress);
}

#endif

}  // namespace candelabra::cpu
