// cuBLASLt: the functions in use, a handle per device, and products of matrices by a plan that is
// kept.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

// op(A) @ op(B) as the library sees it: matrices in column-major order. `transposed` ones are read
// so; a batch of them lies `step` elements apart.
struct GemmOperand {
  const void* data;
  int64_t leading;  // elements from column to column
  int64_t step;
  bool transposed;
};

// What is done to the result at last. Only real matrices up to single precision; gelu is the
// formula with a hyperbolic tangent.
enum class Ending { none, bias, bias_and_relu, bias_and_gelu };

struct Gemm {
  int32_t dtype;  // enum cb_dtype, of all matrices
  int64_t rows, columns, inner, batches;
  GemmOperand a, b;
  void* result;  // (rows, columns), not transposed
  int64_t result_leading, result_step;
  // `rows` elements that are added to each column, or null where the ending is none
  const void* bias = nullptr;
  Ending ending = Ending::none;
};

// result = alpha * op(a) @ op(b) + beta * result, on the call's stream. Alpha and beta are of the
// type computed in. Returns false where cuBLASLt has no algorithm for it.
bool multiply(const Call& call, const Gemm& gemm, cb_scalar alpha, cb_scalar beta);

// Whether cuBLASLt multiplies matrices of this dtype.
bool multiplies(int32_t dtype);

}  // namespace candelabra::cuda
