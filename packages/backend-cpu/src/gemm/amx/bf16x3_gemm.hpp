// Products of float32 matrices on AMX, which multiplies bfloat16: bf16x3 emulation of float32.
//
// A float32 is exactly the sum of three bfloat16, a = a1 + a2 + a3, each at most 2^-9 of the one
// before. Of the nine products of parts, a2 b3, a3 b2 and a3 b3 are below 2^-26 of a b. That is
// less than half of the rounding error of a b in float32. The other six are summed in float32.
// Small ones are summed first and separately, so that sums are rounded less often than in a loop
// over k (Henry, Tang, Heinecke: Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations, 2019).
//
// All six are needed. For normally distributed numbers and k = 1024 the relative root-mean-square
// error of results is 7e-8, and that of MKL's float32 is 3.4e-7. Without a2 b2 it is 2.8e-6, and
// without a1 b3 and a3 b1 3.5e-6.
//
// Blocks with numbers outside the range of the emulation (infinities, NaN, numbers near the limits
// of the exponent) are multiplied on the vector units.
#pragma once

#include "gemm/gemm.hpp"

namespace candelabra::cpu {

// Whether this processor has AMX for bfloat16, the operating system permits it, and the AVX-512
// loops are in use.
bool has_amx_gemm();
// Whether AMX may pay off. Short sides leave tiles empty, and few multiplications do not pay for
// splitting the factors and for the start-up of AMX.
inline bool suits_amx_gemm(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t shortest = 48;
  constexpr double min_multiplications = 1 << 24;
  return m >= shortest && n >= shortest && k >= shortest &&
         static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >= min_multiplications;
}
// Results do not depend on the number of threads.
void amx_gemm(const Gemm<float>& problem);
void amx_gemm(const Gemm<float>& problem, const Epilogue<float>& finish);

}  // namespace candelabra::cpu
