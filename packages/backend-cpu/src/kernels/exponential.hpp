// exp without branches or tables, for loops that the compiler vectorizes. Within 1 unit in the last place; NaN, infinities,
// overflow and gradual underflow as std::exp has them.
#pragma once

#include <bit>
#include <cstdint>

#include "../dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// exp(x) = 2^n exp(r), |r| <= log(2)/2: the Taylor series of exp(r) is below rounding after the 7th (float) and 13th (double)
// power. Adding 1.5 * 2^mantissa bits rounds to an integer that is then found in the low bits. 2^n is applied in two factors, as it
// may not be representable itself where the result is.
[[gnu::always_inline]] inline float vector_exp(float x) {
  constexpr float magic = 12582912.0f;
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  float n = (x * 1.44269504088896341f + magic) - magic;
  float r = x - n * 0.693145751953125f;
  r = r - n * 1.42860682030941723212e-6f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  float y = (p * (r * r) + r) + 1.0f;
  float half = (n * 0.5f + magic) - magic;
  int32_t first = std::bit_cast<int32_t>(half + magic) - std::bit_cast<int32_t>(magic);
  int32_t second = std::bit_cast<int32_t>((n - half) + magic) - std::bit_cast<int32_t>(magic);
  return y * std::bit_cast<float>((first + 127) << 23) * std::bit_cast<float>((second + 127) << 23);
}

[[gnu::always_inline]] inline double vector_exp(double x) {
  constexpr double magic = 6755399441055744.0;
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  double n = (x * 1.44269504088896340736 + magic) - magic;
  double r = x - n * 6.93147180369123816490e-01;
  r = r - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  double y = (p * (r * r) + r) + 1.0;
  double half = (n * 0.5 + magic) - magic;
  uint64_t first = std::bit_cast<uint64_t>(half + magic) - std::bit_cast<uint64_t>(magic);
  uint64_t second = std::bit_cast<uint64_t>((n - half) + magic) - std::bit_cast<uint64_t>(magic);
  return y * std::bit_cast<double>((first + 1023) << 52) * std::bit_cast<double>((second + 1023) << 52);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
