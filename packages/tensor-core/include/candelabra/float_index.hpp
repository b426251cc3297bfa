// Floating-point numbers as indices, counts and offsets, for the kernels of all backends.
//
// In C++ the conversion of a float that the integer type cannot hold is undefined, and NaN passes
// through most comparisons: an index made by a plain static_cast may be any number. Kernels use
// these functions instead; tools/lint_float_index.py looks for those that do not.
#ifndef CANDELABRA_FLOAT_INDEX_HPP
#define CANDELABRA_FLOAT_INDEX_HPP

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "candelabra/host_device.hpp"

namespace candelabra {
inline namespace CANDELABRA_ISA_NAMESPACE {

// `value` rounded towards zero and clamped to [low, high]; NaN gives `low`. Defined for every
// value, and without a branch, so that loops of it are vectorized. Of values beyond the largest
// number that I and F share, that one is clamped.
template <typename I, typename F>
CANDELABRA_FORMULA I index_from_float(F value, I low, I high) {
  static_assert(std::is_integral_v<I> && std::is_floating_point_v<F>);
  // The largest number that both types hold: F may have fewer digits than I.
  constexpr int more = std::numeric_limits<I>::digits - std::numeric_limits<F>::digits, lost = more > 0 ? more : 0;
  constexpr F max_value = static_cast<F>(std::numeric_limits<I>::max() >> lost << lost);
  constexpr F min_value = static_cast<F>(std::numeric_limits<I>::min());
  const F above = value > min_value ? value : min_value;  // NaN becomes the lowest, too
  const I whole =
      static_cast<I>(above < max_value ? above : max_value);  // float index: in the range of I by the lines above
  const I risen = whole < low ? low : whole;
  return risen < high ? risen : high;
}

// `value` rounded towards zero if it is in [0, size), otherwise -1; NaN gives -1.
template <typename I, typename F>
CANDELABRA_FORMULA I index_or_outside(F value, F size) {
  static_assert(std::is_signed_v<I> && std::is_floating_point_v<F>);
  const bool inside = (value >= 0) & (value < size);
  const I whole = static_cast<I>(inside ? value : F(0));  // float index: `size` was an I
  return inside ? whole : I(-1);
}

// The bins of equal width of [low, high], for elements of type C.
//
// The usual formula, (value - low) * (bins / (high - low)), overflows where the interval is wider
// than the largest number of C, and where it is so narrow that bins per unit are too many. There
// everything is multiplied by a power of two first, which is exact; elsewhere the factor is 1, and
// costs nothing where multiplications and subtractions are one instruction.
template <typename C>
struct EqualBins {
  static constexpr int64_t most_bins = int64_t{1} << 30;

  C low, high, factor, scaled_low, per_unit;
  int32_t bins;

  // `lowest` and `highest` are finite numbers of C, the second one larger; rounded to C they may be
  // equal. There are from 1 to most_bins bins.
  CANDELABRA_FORMULA EqualBins(double lowest, double highest, int64_t bins)
      : low(static_cast<C>(lowest)),
        high(static_cast<C>(highest)),
        factor(1),
        per_unit(0),
        bins(static_cast<int32_t>(bins)) {
    // Up to these exponents the factor is a normal number of C. 32 is for the number of bins.
    constexpr int max_exponent = std::numeric_limits<C>::max_exponent - 28, usual = max_exponent - 32;
    const double first = static_cast<double>(low), last = static_cast<double>(high), width = last - first;
    const int exponent = std::isfinite(width) ? std::ilogb(width) : max_exponent;
    if (exponent < -usual || exponent > usual)
      factor = static_cast<C>(std::ldexp(1.0, exponent < -max_exponent  ? max_exponent
                                              : exponent > max_exponent ? -max_exponent
                                                                        : -exponent));
    const double wide = static_cast<double>(factor), scaled = last * wide - first * wide;
    scaled_low = low * factor;
    // Otherwise all is in bin 0
    if (scaled > 0) per_unit = static_cast<C>(static_cast<double>(bins) / scaled);
  }

  // Which bin a value is in; `bins` for NaN and for what is outside.
  CANDELABRA_FORMULA int32_t bin_of(C value) const {
    const bool inside = (value >= low) & (value <= high);
    // float index: inside, the product is from 0 to little more than `bins`, which is at most 2^30
    const auto bin = static_cast<int32_t>(inside ? (value * factor - scaled_low) * per_unit : C(0));
    const int32_t last = bins - 1, clamped = bin < last ? bin : last;
    return inside ? clamped : bins;
  }
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra

#endif
