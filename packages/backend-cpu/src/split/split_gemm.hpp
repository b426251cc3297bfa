// Products of float32 matrices on the tile units of a processor (AMX), which multiply bfloat16.
//
// A float32 is exactly the sum of three bfloat16, a = a1 + a2 + a3, each at most 2^-9 of the one before. Of the nine products of
// parts, a2 b3, a3 b2 and a3 b3 are below 2^-26 of a b, less than half of what rounding a b to float32 loses; the other six are
// summed in float32, the small ones first and apart, so that sums are rounded less often than those of a loop over k
// (Henry, Tang, Heinecke: Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations, 2019).
// All six are needed: for normal numbers and k = 1024 the error of a result (root of the mean square, over that of the results) is
// 7e-8, that of MKL's float32 3.4e-7, and without a2 b2, or without a1 b3 and a3 b1, 2.8e-6 and 3.5e-6.
// Blocks with numbers that this does not hold for (infinities, NaN, numbers near the limits of the exponent) are multiplied by
// the vector unit.
#pragma once

#include "../matmul/gemm.hpp"

namespace candelabra::cpu {

// Whether this processor has the units, the operating system lets us use them, and the loops for AVX-512 are in use.
bool has_split_gemm();
// Whether there may be work for the units: short sides leave tiles empty, and few multiplications do not pay for taking the factors
// apart and for waking the units.
inline bool suits_split_gemm(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t shortest = 48;
  constexpr double least = 1 << 24;
  return m >= shortest && n >= shortest && k >= shortest &&
         static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >= least;
}
// Results do not depend on the number of threads.
void split_gemm(const Gemm<float>& problem);
void split_gemm(const Gemm<float>& problem, const Finish<float>& finish);

}  // namespace candelabra::cpu
