// What the rest of the library asks of oneDNN, in builds without it.
#include <cstddef>
#include <cstdint>

#include "gemm/autotune.hpp"
#include "gemm/gemm_onednn.hpp"
#include "kernels/convolution/convolution_onednn.hpp"
#include "vendor/packed_weights.hpp"

namespace candelabra::cpu {

bool has_onednn() {
  return false;
}

bool has_product_instructions(int32_t) {
  return false;
}

bool onednn_matmul(const MatmulProblem&) {
  return false;
}

void gemm_by_onednn(const Gemm<float>& problem) {
  gemm_by_blas(problem);
}

bool onednn_convolution(ConvolutionKind, int32_t, const ConvolutionShape&, const ConvolutionOperand&,
                        const ConvolutionOperand&, const void*, const ConvolutionOperand&) {
  return false;
}

// No weight is packed.
int64_t kept_bytes_allowed() {
  return 0;
}
void drop_packed_weights(const void*, size_t) noexcept {}
bool drop_all_packed_weights() noexcept {
  return false;
}
void packed_weights_before_fork() {}
void packed_weights_after_fork() {}

}  // namespace candelabra::cpu
