// What random numbers are made of beside random.hpp: formulas that the kernels of all backends share.
#ifndef CANDELABRA_DRAWS_HPP
#define CANDELABRA_DRAWS_HPP

#include <cmath>
#include <cstdint>

#include "candelabra/float_index.hpp"
#include "candelabra/math.hpp"
#include "candelabra/random.hpp"

namespace candelabra::draws {

// cos and sin of 2 pi u for u of [0, 1]: quarters of a turn are taken off exactly.
template <typename C>
struct Direction {
  C cos, sin;
};
template <typename C>
CANDELABRA_FORMULA Direction<C> direction(C u) {
  using F = math::detail::Format<C>;
  C quarters = C(4) * u;
  C shifted = quarters + F::round_magic;
  auto n = math::detail::bits_of(shifted);
  C r = (quarters - (shifted - F::round_magic)) * static_cast<C>(1.57079632679489661923);
  C s = math::detail::sin_series(r), c = math::detail::cos_series(r);
  C sine = n & 1 ? c : s, cosine = n & 1 ? s : c;
  return {(n + 1) & 2 ? -cosine : cosine, n & 2 ? -sine : sine};
}

// Two normal numbers from two uniform ones of [0, 1) (Box and Muller, 1958).
template <typename C>
CANDELABRA_FORMULA NormalPair<C> normal_numbers(C u1, C u2) {
  C radius = math::sqrt(C(-2) * math::log(C(1) - u1));
  auto [cosine, sine] = direction(u2);
  return {radius * cosine, radius * sine};
}

template <typename C>
CANDELABRA_FORMULA C exponential(C u, C rate) {
  return -math::log1p(-u) / rate;
}

// uniform32 < p, exactly, as a comparison of whole numbers: (word >> 8) < ceil(p 2^24).
inline int32_t probability_threshold(double p) {
  return index_from_float<int32_t>(std::ceil(p * 0x1p24), 0, 1 << 24);
}

// The remainder of divisions by one number, by a multiplication with its inverse (Barrett): the quotient is at most one too small.
class Modulo {
 public:
  explicit Modulo(uint64_t divisor)
      : divisor_(divisor), inverse_(divisor > 1 ? static_cast<uint64_t>((Wide{1} << 64) / divisor) : 0) {}
  CANDELABRA_FORMULA uint64_t operator()(uint64_t word) const {
    if (divisor_ == 1) return 0;
    const auto quotient = static_cast<uint64_t>(static_cast<Wide>(word) * inverse_ >> 64);
    const uint64_t rest = word - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  uint64_t divisor_, inverse_;
};

}  // namespace candelabra::draws

#endif
