// Without the loops for AVX-512 nothing is multiplied on tile units.
#include "../kernels.hpp"
#include "split_gemm.hpp"

namespace candelabra::cpu {

bool has_split_gemm() {
  return false;
}

void split_gemm(const SplitGemm&) {
  throw failure(CB_RUNTIME_ERROR, "this build has no products on tile units");
}

}  // namespace candelabra::cpu
