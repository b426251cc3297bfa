// cuBLASLt: the functions in use, a handle per device, and matrix products with cached plans.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

// A factor of op(A) @ op(B), column-major. A `transposed` one is read as its transpose; items of a
// batch are `step` elements apart.
struct GemmOperand {
  const void* data;
  int64_t leading;  // elements between columns
  int64_t step;
  bool transposed;
};

// The epilogue. Only for real matrices up to single precision; gelu is the tanh approximation.
enum class Epilogue { none, bias, bias_and_relu, bias_and_gelu };

struct Gemm {
  int32_t dtype;  // enum cb_dtype, of all matrices
  int64_t rows, columns, inner, batches;
  GemmOperand a, b;
  void* result;  // (rows, columns), not transposed
  int64_t result_leading, result_step;
  // `rows` elements that are added to each column; null without a bias
  const void* bias = nullptr;
  Epilogue epilogue = Epilogue::none;
};

// result = alpha * op(a) @ op(b) + beta * result, on the call's stream. Alpha and beta have the
// type that is computed in. Returns false if cuBLASLt has no algorithm.
bool multiply(const Call& call, const Gemm& gemm, cb_scalar alpha, cb_scalar beta);

// Whether cuBLASLt multiplies matrices of this dtype.
bool multiplies(int32_t dtype);

}  // namespace candelabra::cuda
