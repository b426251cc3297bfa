// The Fourier transforms of the library that is linked: MKL's, or ducc's with
// CANDELABRA_BLAS=openblas.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace candelabra::cpu::fourier {

constexpr size_t most_dims = 3;  // that one call transforms

// The memory layout of one side of a call: strides within a slice (or plane, or volume), and
// `distance` between slices.
struct Layout {
  std::array<int64_t, most_dims> strides;
  int64_t distance;
  auto operator<=>(const Layout&) const = default;
};

enum class Kind { Complex, RealToComplex, ComplexToReal };

struct Plan {
  size_t rank;
  std::array<int64_t, most_dims> sizes;
  int64_t batch;
  Layout in, out;
  Kind kind;
  bool forward, single, in_place, threaded;
  double scale;
  auto operator<=>(const Plan&) const = default;
};

// Transforms `batch` slices. `in` is `out` where the plan is in place, and is not written to
// otherwise. The scale applies to both directions.
void transform(const Plan& plan, const void* in, void* out);

}  // namespace candelabra::cpu::fourier
