#include "vendor/lapack_interruption.hpp"

#include <mkl_service.h>

#include "threads/interruption.hpp"

namespace candelabra::cpu {
namespace {

// MKL ends the routine if this returns another number than 0. It calls it on threads of its team,
// too, which compute for no kernel of ours.
int report_progress(int*, int*, char*, int) {
  RunningKernel* const kernel = running_kernel();
  return kernel && kernel->is_to_end() ? 1 : 0;
}

}  // namespace

void watch_lapack() {
  mkl_set_progress(report_progress);
}

}  // namespace candelabra::cpu
