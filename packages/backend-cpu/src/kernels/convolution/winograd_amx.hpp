// Winograd convolution on AMX.
#pragma once

#include "kernels/convolution/winograd.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace winograd {

// Whether AMX is faster for these numbers of channels and tiles.
bool suits_amx(int64_t inputs, int64_t outputs, int64_t tiles, bool is_weight_gradient);

// Like convolve() and weight_gradient() of winograd.hpp; require has_amx_gemm(). Also false for
// numbers too small for bfloat16 parts.
bool convolve_on_amx(const Images& input, const Weight& weight, const float* bias, const Images& output, int64_t batch,
                     int64_t pad_rows, int64_t pad_columns);
bool weight_gradient_on_amx(const Images& input, const Images& grad, const Weight& of_weight, int64_t batch,
                            int64_t pad_rows, int64_t pad_columns);

}  // namespace winograd
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
