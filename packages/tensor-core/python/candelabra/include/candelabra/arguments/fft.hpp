// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family fft, for kernels:
//
//   const arguments::FftC2c args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_FFT_HPP
#define CANDELABRA_ARGUMENTS_FFT_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// _fft_c2c(Tensor self, int[] dim, bool forward, float scale=1.0) -> Tensor
struct FftC2c {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool forward;
  double scale;

  explicit FftC2c(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        forward(call.boolean(2)),
        scale(call.real(3)) {}
};

// _fft_r2c(Tensor self, int dim, float scale=1.0) -> Tensor
struct FftR2c {
  const cb_tensor* self;
  int64_t dim;
  double scale;

  explicit FftR2c(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        scale(call.real(2)) {}
};

// _fft_r2c_nd(Tensor self, int[] dim, float scale=1.0) -> Tensor
struct FftR2cNd {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  double scale;

  explicit FftR2cNd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        scale(call.real(2)) {}
};

// _fft_c2r(Tensor self, int dim, int n, float scale=1.0) -> Tensor
struct FftC2r {
  const cb_tensor* self;
  int64_t dim;
  int64_t n;
  double scale;

  explicit FftC2r(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        n(call.integer(2)),
        scale(call.real(3)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_FFT_HPP
