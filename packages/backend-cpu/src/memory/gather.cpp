#include "memory/gather.hpp"

#include <cstring>

#include "drivers/blocks.hpp"
#include "dtypes.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {
namespace {

// Gathers every second element of 4 or 8 bytes by full-register loads and shuffles.
int64_t gather_pairs(uint32_t* to, const uint32_t* from, int64_t n) {
  // loads must not pass the last gathered element
  const int64_t whole = n > 8 ? (n - 1) & ~int64_t{7} : 0;
  for (int64_t i = 0; i < whole; i += 8) {
    const __m256 low = _mm256_loadu_ps(reinterpret_cast<const float*>(from + 2 * i));
    const __m256 high = _mm256_loadu_ps(reinterpret_cast<const float*>(from + 2 * i + 8));
    const __m256d both = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    _mm256_storeu_pd(reinterpret_cast<double*>(to + i), _mm256_permute4x64_pd(both, 0xd8));
  }
  return whole;
}
int64_t gather_pairs(uint64_t* to, const uint64_t* from, int64_t n) {
  const int64_t whole = n > 4 ? (n - 1) & ~int64_t{3} : 0;
  for (int64_t i = 0; i < whole; i += 4) {
    const __m256d low = _mm256_loadu_pd(reinterpret_cast<const double*>(from + 2 * i));
    const __m256d high = _mm256_loadu_pd(reinterpret_cast<const double*>(from + 2 * i + 4));
    _mm256_storeu_pd(reinterpret_cast<double*>(to + i), _mm256_permute4x64_pd(_mm256_unpacklo_pd(low, high), 0xd8));
  }
  return whole;
}

}  // namespace

void gather(void* out, const void* in, int64_t stride, int64_t itemsize, int64_t n) {
  if (stride == 1) return void(std::memcpy(out, in, n * itemsize));
  if (stride == 0) return repeat_element(out, in, itemsize, n);
  dispatch_size(itemsize, [&]<typename U>() {
    U* to = static_cast<U*>(out);
    const U* from = static_cast<const U*>(in);
    int64_t i = 0;
    if constexpr (sizeof(U) == 4 || sizeof(U) == 8)
      if (stride == 2) i = gather_pairs(to, from, n);
    for (; i < n; ++i) to[i] = from[i * stride];
  });
}

}  // namespace candelabra::cpu
