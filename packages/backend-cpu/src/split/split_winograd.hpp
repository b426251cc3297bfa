// The products of Winograd's method on the tile units of a processor.
#pragma once

#include "../kernels/winograd.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace winograd {

// Whether the units are faster with so many channels and tiles.
bool suit_tiles(int64_t inputs, int64_t outputs, int64_t tiles, bool is_weight_gradient);

// As convolve() and weight_gradient() of winograd.hpp, where has_split_gemm(). False, too, for numbers so small that parts of them
// would be none of a bfloat16.
bool convolve_on_tiles(const Images& input, const Weight& weight, const float* bias, const Images& output, int64_t batch,
                       int64_t pad_rows, int64_t pad_columns);
bool weight_gradient_on_tiles(const Images& input, const Images& grad, const Weight& of_weight, int64_t batch, int64_t pad_rows,
                              int64_t pad_columns);

}  // namespace winograd
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
