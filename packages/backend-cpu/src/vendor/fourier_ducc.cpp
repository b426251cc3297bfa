#include <complex>
#include <exception>
#include <new>
#include <vector>

#include <ducc0/fft/fft.h>

#include "kernels.hpp"
#include "vendor/fourier.hpp"

namespace candelabra::cpu::fourier {
namespace {

using Shape = std::vector<size_t>;
using Strides = std::vector<ptrdiff_t>;

// The dimensions of one side: the batch, then those of the transform. The last of them has
// `last` elements, which is half of a spectrum on one side of a real transform.
Shape shape_of(const Plan& plan, int64_t last) {
  Shape shape{static_cast<size_t>(plan.batch)};
  for (size_t d = 0; d < plan.rank; ++d) shape.push_back(static_cast<size_t>(plan.sizes[d]));
  shape.back() = static_cast<size_t>(last);
  return shape;
}

Strides strides_of(const Plan& plan, const Layout& layout) {
  Strides strides{layout.distance};
  strides.insert(strides.end(), layout.strides.begin(), layout.strides.begin() + static_cast<ptrdiff_t>(plan.rank));
  return strides;
}

template <typename T>
void transform_as(const Plan& plan, const void* in, void* out) {
  using Complex = std::complex<T>;
  const int64_t size = plan.sizes[plan.rank - 1], half = size / 2 + 1;
  const bool from_real = plan.kind == Kind::RealToComplex, to_real = plan.kind == Kind::ComplexToReal;
  const Shape in_shape = shape_of(plan, to_real ? half : size), out_shape = shape_of(plan, from_real ? half : size);
  const Strides in_strides = strides_of(plan, plan.in), out_strides = strides_of(plan, plan.out);
  Shape axes;
  for (size_t d = 0; d < plan.rank; ++d) axes.push_back(d + 1);
  const T scale = static_cast<T>(plan.scale);
  constexpr size_t threads = 1;  // blocks of slices are divided among ours
  if (from_real)
    ducc0::r2c(ducc0::cfmav<T>(static_cast<const T*>(in), in_shape, in_strides),
               ducc0::vfmav<Complex>(static_cast<Complex*>(out), out_shape, out_strides), axes, plan.forward, scale,
               threads);
  else if (to_real)
    ducc0::c2r(ducc0::cfmav<Complex>(static_cast<const Complex*>(in), in_shape, in_strides),
               ducc0::vfmav<T>(static_cast<T*>(out), out_shape, out_strides), axes, plan.forward, scale, threads);
  else
    ducc0::c2c(ducc0::cfmav<Complex>(static_cast<const Complex*>(in), in_shape, in_strides),
               ducc0::vfmav<Complex>(static_cast<Complex*>(out), out_shape, out_strides), axes, plan.forward, scale,
               threads);
}

}  // namespace

void transform(const Plan& plan, const void* in, void* out) {
  try {
    plan.single ? transform_as<float>(plan, in, out) : transform_as<double>(plan, in, out);
  } catch (const std::bad_alloc&) {
    throw failure(CB_OUT_OF_MEMORY, "the Fourier transform ran out of memory");
  } catch (const std::exception& error) {
    throw failure(CB_RUNTIME_ERROR, "Fourier transform: %s", error.what());
  }
}

}  // namespace candelabra::cpu::fourier
