// Matrix products in BLAS form: row-major, each matrix with a leading dimension and a transpose
// flag.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// c = alpha * op(a) @ op(b) + beta * c; op(a) is m × k, op(b) is k × n. With beta == 0, c is not
// read. m, n and k are at least 1.
template <typename T>
struct Gemm {
  bool transpose_a;
  bool transpose_b;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

void gemm(const Gemm<float>& problem);
void gemm(const Gemm<double>& problem);
void gemm(const Gemm<std::complex<float>>& problem);
void gemm(const Gemm<std::complex<double>>& problem);

enum class Activation : int32_t { none, relu, gelu };

// The epilogue of a product: c = activation(c + factor * added) (gemm/epilogue.hpp).
template <typename T>
struct Epilogue {
  const T* added;      // n elements per row, or null
  int64_t added_step;  // elements between rows: 0 for a bias
  T factor;
  Activation activation;
};
// Applies the epilogue to a block of the product. The caller passes it, because its loops are
// compiled per instruction set (gemm/epilogue.hpp).
template <typename T>
using EpilogueBlock = void (*)(const Epilogue<T>& finish, T* c, int64_t ldc, int64_t rows, int64_t columns);
void gemm(const Gemm<float>& problem, const Epilogue<float>& finish, EpilogueBlock<float> epilogue_block);
void gemm(const Gemm<double>& problem, const Epilogue<double>& finish, EpilogueBlock<double> epilogue_block);

// Products of the same sizes, whose matrices lie a_step, b_step and c_step elements apart.
template <typename T>
struct GemmBatch {
  Gemm<T> first;
  int64_t count;
  int64_t a_step, b_step, c_step;
};
void gemm_batch(const GemmBatch<float>& batch);
void gemm_batch(const GemmBatch<double>& batch);
void gemm_batch(const GemmBatch<std::complex<float>>& batch);
void gemm_batch(const GemmBatch<std::complex<double>>& batch);

// The largest leading dimension that BLAS accepts. A matrix with a larger one must be packed.
int64_t largest_leading_dimension();

// Products of bfloat16 or float16 matrices (elements as their bits), accumulated in float32: c =
// op(a) @ op(b) + bias. `bias` (n elements of `dtype`) may be null. c is float32 or of `dtype`.
struct HalfGemm {
  int32_t dtype;  // CB_BFLOAT16 or CB_FLOAT16
  bool transpose_a;
  bool transpose_b;
  int64_t m, n, k;
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  const void* bias;
  void* c;
  int64_t ldc;
  bool float_result;
  int64_t batches = 1;  // as in GemmBatch, without a bias
  int64_t a_step = 0, b_step = 0, c_step = 0;
  Activation activation = Activation::none;  // applied before the result is rounded
};

// False, with nothing written, if this processor has no such kernel or is faster in float32.
bool half_gemm(const HalfGemm& problem);

// One line per shape class of float32 products: the chosen library, and why.
std::string describe_gemm();

}  // namespace candelabra::cpu
