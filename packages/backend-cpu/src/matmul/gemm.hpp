// Products of matrices that BLAS can address: row-major, each with a leading dimension and a transpose flag.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// c = alpha * op(a) @ op(b) + beta * c; op(a) is m × k, op(b) is k × n. With beta == 0, c is not read. m, n and k are at least 1.
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

// c = activation(c + factor * added), done with a product (matmul/finish.hpp).
template <typename T>
struct Finish {
  const T* added;      // n elements a row, or null
  int64_t added_step;  // from row to row: 0 for a bias
  T factor;
  Activation activation;
};
// Does that to a block of the product. The loops are the caller's, for they are compiled for the processor (matmul/finish.hpp).
template <typename T>
using FinishBlock = void (*)(const Finish<T>& finish, T* c, int64_t ldc, int64_t rows, int64_t columns);
void gemm(const Gemm<float>& problem, const Finish<float>& finish, FinishBlock<float> finish_block);
void gemm(const Gemm<double>& problem, const Finish<double>& finish, FinishBlock<double> finish_block);

// Products of the same sizes whose matrices lie so many elements apart.
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

// A larger leading dimension cannot be handed to BLAS: the matrix has to be packed.
int64_t largest_leading_dimension();

// The same for bfloat16 and float16 (elements as their bits), accumulated in float32: c = op(a) @ op(b) + bias, where bias (n
// elements of `dtype`) may be null, and c is float32 or of `dtype`.
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
  int64_t batches = 1;  // as in GemmBatch; without a bias
  int64_t a_step = 0, b_step = 0, c_step = 0;
  Activation activation = Activation::none;  // of the result, before it is rounded
};

// False where this processor has no such kernel, or is quicker in float32 (nothing was written then).
bool half_gemm(const HalfGemm& problem);

// One line for each shape class of float32 products: which library was chosen, and why.
std::string describe_gemm();

}  // namespace candelabra::cpu
