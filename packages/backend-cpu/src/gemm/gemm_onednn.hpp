// Matrix products by oneDNN's matmul primitive, for float32 and the half precisions.
#pragma once

#include <cstdint>

#include "gemm/gemm.hpp"

namespace candelabra::cpu {

// c = activation(op(a) @ op(b) + bias). op(a) is m × k, op(b) is k × n, all row-major with leading
// dimensions. dtypes are enum cb_dtype.
struct MatmulProblem {
  int32_t a_dtype;  // of b as well
  int32_t c_dtype;
  int32_t bias_dtype;
  bool transpose_a;
  bool transpose_b;
  int64_t m, n, k;
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  const void* bias;  // n elements, or null
  void* c;
  int64_t ldc;
  // A batch of products of the same sizes, whose matrices lie the steps apart, in elements; without
  // a bias.
  int64_t batches = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0;
  Activation activation = Activation::none;
  int32_t most_threads = INT32_MAX;
};

// Whether the library is built with oneDNN. Without it, everything is refused or left to BLAS.
bool has_onednn();

// Whether this processor has instructions for products of a dtype. oneDNN emulates missing ones,
// several times slower than float32.
bool has_product_instructions(int32_t dtype);

// False, with nothing written, if oneDNN has only its reference loop for this on this processor.
bool onednn_matmul(const MatmulProblem& problem);

}  // namespace candelabra::cpu
