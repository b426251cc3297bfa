#include "gemm/gemm.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "candelabra/float_index.hpp"
#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/autotune.hpp"
#include "gemm/gemm_onednn.hpp"
#include "gemm/panel_gemm.hpp"
#include "gemm/threaded_gemm.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"
#include "vendor/blas.hpp"

namespace candelabra::cpu {
namespace {

constexpr int64_t blas_limit = std::numeric_limits<BlasInteger>::max();

CBLAS_TRANSPOSE flag(bool transpose) {
  return transpose ? CblasTrans : CblasNoTrans;
}

void call_blas(const Gemm<float>& p) {
  cblas_sgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb,
              p.beta, p.c, p.ldc);
}
void call_blas(const Gemm<double>& p) {
  cblas_dgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb,
              p.beta, p.c, p.ldc);
}
void call_blas(const Gemm<std::complex<float>>& p) {
  cblas_cgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), p.m, p.n, p.k, &p.alpha, p.a, p.lda, p.b, p.ldb,
              &p.beta, p.c, p.ldc);
}
void call_blas(const Gemm<std::complex<double>>& p) {
  cblas_zgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), p.m, p.n, p.k, &p.alpha, p.a, p.lda, p.b, p.ldb,
              &p.beta, p.c, p.ldc);
}

// A product with one column is a matrix times a vector. Both vectors have the strides of their
// matrices.
void call_blas_vector(const Gemm<float>& p, int64_t rows, int64_t columns, int64_t step) {
  cblas_sgemv(CblasRowMajor, flag(p.transpose_a), rows, columns, p.alpha, p.a, p.lda, p.b, step, p.beta, p.c, p.ldc);
}
void call_blas_vector(const Gemm<double>& p, int64_t rows, int64_t columns, int64_t step) {
  cblas_dgemv(CblasRowMajor, flag(p.transpose_a), rows, columns, p.alpha, p.a, p.lda, p.b, step, p.beta, p.c, p.ldc);
}
void call_blas_vector(const Gemm<std::complex<float>>& p, int64_t rows, int64_t columns, int64_t step) {
  cblas_cgemv(CblasRowMajor, flag(p.transpose_a), rows, columns, &p.alpha, p.a, p.lda, p.b, step, &p.beta, p.c, p.ldc);
}
void call_blas_vector(const Gemm<std::complex<double>>& p, int64_t rows, int64_t columns, int64_t step) {
  cblas_zgemv(CblasRowMajor, flag(p.transpose_a), rows, columns, &p.alpha, p.a, p.lda, p.b, step, &p.beta, p.c, p.ldc);
}

// The integers of BLAS have 32 bits here: a longer side is halved.
template <typename T>
void multiply_by_blas(const Gemm<T>& p) {
  if (p.m > blas_limit || p.n > blas_limit || p.k > blas_limit) [[unlikely]] {
    Gemm<T> first = p, second = p;
    if (p.m > blas_limit) {
      first.m = p.m / 2;
      second.m = p.m - first.m;
      second.a = p.a + first.m * (p.transpose_a ? 1 : p.lda);
      second.c = p.c + first.m * p.ldc;
    } else if (p.n > blas_limit) {
      first.n = p.n / 2;
      second.n = p.n - first.n;
      second.b = p.b + first.n * (p.transpose_b ? p.ldb : 1);
      second.c = p.c + first.n;
    } else {
      first.k = p.k / 2;
      second.k = p.k - first.k;
      second.a = p.a + first.k * (p.transpose_a ? p.lda : 1);
      second.b = p.b + first.k * (p.transpose_b ? 1 : p.ldb);
      second.beta = 1;
    }
    multiply_by_blas(first);
    multiply_by_blas(second);
    return;
  }
  if (p.n == 1)
    call_blas_vector(p, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.transpose_b ? 1 : p.ldb);
  else
    call_blas(p);
}

// Calls multiply(first product, count) for groups of products, each on one thread. The size of a
// group does not depend on the number of threads.
template <typename T, typename F>
void in_groups(const GemmBatch<T>& batch, F&& multiply) {
  const Gemm<T>& p = batch.first;
  constexpr int64_t group_work = int64_t{1} << 16;  // multiplications, half of what pays for a team
  const int64_t group = std::max<int64_t>(1, group_work / (p.m * p.n * p.k)),
                groups = (batch.count + group - 1) / group;
  parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * group;
      Gemm<T> first = p;
      first.a += at * batch.a_step;
      first.b += at * batch.b_step;
      first.c += at * batch.c_step;
      multiply(first, std::min(group, batch.count - at));
    }
  });
}

template <typename T>
void batch_one_by_one(const GemmBatch<T>& batch, void (*multiply)(const Gemm<T>&)) {
  in_groups(batch, [&](Gemm<T> p, int64_t count) {
    const LibraryThreads one(1);
    for (int64_t i = 0; i < count; ++i) {
      multiply(p);
      p.a += batch.a_step;
      p.b += batch.b_step;
      p.c += batch.c_step;
    }
  });
}

// BLAS takes complex factors by address.
template <typename T, typename F>
void batch_by_blas(const GemmBatch<T>& batch, F* function) {
  // OpenBLAS 0.3.34 gives wrong results for complex batches.
  if constexpr (CANDELABRA_OPENBLAS) return batch_one_by_one<T>(batch, multiply_by_blas<T>);
  const Gemm<T>& p = batch.first;
  const auto factor = [](const T& value) {
    if constexpr (std::is_floating_point_v<T>)
      return value;
    else
      return static_cast<const void*>(&value);
  };
  in_groups(batch, [&](const Gemm<T>& first, int64_t count) {
    const LibraryThreads one(1);
    function(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), p.m, p.n, p.k, factor(p.alpha), first.a, p.lda,
             batch.a_step, first.b, p.ldb, batch.b_step, factor(p.beta), first.c, p.ldc, batch.c_step, count);
  });
}

}  // namespace

int64_t largest_leading_dimension() {
  return blas_limit;
}

void gemm_by_blas(const Gemm<float>& problem) {
  multiply_by_blas(problem);
}

namespace {

// Returns whether our own panels computed the product.
template <typename T>
bool try_panels(const Gemm<T>& p, const Epilogue<T>* finish = nullptr, EpilogueBlock<T> epilogue_block = nullptr) {
  const Cuts cuts = cuts_of(p.m, p.n, p.k, p.transpose_b);
  Gemm<T> part = p;
  part.k = p.k / cuts.deep;
  if (!chooses_panels(part)) return false;
  multiply_in_parts(p, cuts, panel_gemm, finish, epilogue_block);
  return true;
}

template <typename T>
void multiply_by_blas_in_parts(const Gemm<T>& p, const Epilogue<T>* finish = nullptr,
                               EpilogueBlock<T> epilogue_block = nullptr) {
  multiply_by_library(p, cuts_of(p.m, p.n, p.k, p.transpose_b), multiply_by_blas<T>, finish, epilogue_block);
}

void multiply_autotuned(const Gemm<float>& p, const Epilogue<float>* finish, EpilogueBlock<float> epilogue_block) {
  if (try_panels(p, finish, epilogue_block)) return;
  // A product cut along k is multiplied in parts, none of which uses AMX.
  const GemmLibrary library =
      choose_gemm_library(is_deep(p.m, p.n, p.k) ? ShapeClass::large : shape_class(p.m, p.n, p.k));
  if (library == GemmLibrary::amx) return finish ? amx_gemm(p, *finish) : amx_gemm(p);
  const Cuts cuts = cuts_of(p.m, p.n, p.k, p.transpose_b);
  multiply_by_library(p, cuts, library == GemmLibrary::blas ? gemm_by_blas : gemm_by_onednn, finish, epilogue_block);
}

}  // namespace

void gemm(const Gemm<float>& problem) {
  multiply_autotuned(problem, nullptr, nullptr);
}
void gemm(const Gemm<float>& problem, const Epilogue<float>& finish, EpilogueBlock<float> epilogue_block) {
  multiply_autotuned(problem, &finish, epilogue_block);
}
void gemm(const Gemm<double>& problem) {
  if (!try_panels(problem)) multiply_by_blas_in_parts(problem);
}
void gemm(const Gemm<double>& problem, const Epilogue<double>& finish, EpilogueBlock<double> epilogue_block) {
  if (!try_panels(problem, &finish, epilogue_block)) multiply_by_blas_in_parts(problem, &finish, epilogue_block);
}
void gemm(const Gemm<std::complex<float>>& problem) {
  multiply_by_blas_in_parts(problem);
}
void gemm(const Gemm<std::complex<double>>& problem) {
  multiply_by_blas_in_parts(problem);
}

void gemm_batch(const GemmBatch<float>& batch) {
  if (chooses_panels(batch.first)) return batch_one_by_one<float>(batch, panel_gemm);
  // For small products the batched call of BLAS is quicker: oneDNN makes them where it is asked
  // for.
  if (is_named(GemmLibrary::onednn)) return batch_one_by_one<float>(batch, gemm_by_onednn);
  batch_by_blas(batch, cblas_sgemm_batch_strided);
}
void gemm_batch(const GemmBatch<double>& batch) {
  if (chooses_panels(batch.first)) return batch_one_by_one<double>(batch, panel_gemm);
  batch_by_blas(batch, cblas_dgemm_batch_strided);
}
void gemm_batch(const GemmBatch<std::complex<float>>& batch) {
  batch_by_blas(batch, cblas_cgemm_batch_strided);
}
void gemm_batch(const GemmBatch<std::complex<double>>& batch) {
  batch_by_blas(batch, cblas_zgemm_batch_strided);
}

namespace {

// Without bfloat16 instructions, oneDNN is slower than widening the factors to float32 first. With
// few rows or columns the widening itself dominates.
bool is_faster_widened(const HalfGemm& p) {
  constexpr int64_t few = 8;
  return p.dtype == CB_BFLOAT16 && std::min(p.m, p.n) >= few && !has_product_instructions(CB_BFLOAT16);
}

bool multiply_halves(const HalfGemm& p) {
  return onednn_matmul({.a_dtype = p.dtype,
                        .c_dtype = p.float_result ? int32_t{CB_FLOAT32} : p.dtype,
                        .bias_dtype = p.dtype,
                        .transpose_a = p.transpose_a,
                        .transpose_b = p.transpose_b,
                        .m = p.m,
                        .n = p.n,
                        .k = p.k,
                        .a = p.a,
                        .lda = p.lda,
                        .b = p.b,
                        .ldb = p.ldb,
                        .bias = p.bias,
                        .c = p.c,
                        .ldc = p.ldc,
                        .batches = p.batches,
                        .a_step = p.a_step,
                        .b_step = p.b_step,
                        .c_step = p.c_step,
                        .activation = p.activation});
}

}  // namespace

bool half_gemm(const HalfGemm& p) {
  if (is_faster_widened(p)) return false;
  // A product that takes seconds is cut into rows, so that it can be interrupted.
  constexpr double most_operations = int64_t{1} << 36;  // in double: the product may exceed 64 bits
  constexpr int64_t fewest_rows = 1024;
  const double row = static_cast<double>(p.n) * static_cast<double>(p.k);
  const int64_t rows = std::max(fewest_rows, index_from_float<int64_t>(most_operations / row, 0, p.m) / 16 * 16);
  if (p.batches > 1 || rows >= p.m) return multiply_halves(p);
  for (int64_t i = 0; i < p.m; i += rows) {
    poll_interruption();
    HalfGemm block = p;
    block.m = std::min(rows, p.m - i);
    block.a = static_cast<const uint16_t*>(p.a) + i * (p.transpose_a ? 1 : p.lda);
    block.c = static_cast<char*>(p.c) + i * p.ldc * (p.float_result ? 4 : 2);
    if (!multiply_halves(block)) return false;
  }
  return true;
}

std::string describe_gemm() {
  return describe_gemm_choices() + "float64 and complex matmul: " + blas_name +
         ", except for tiny float64 ones\nbfloat16 and float16 matmul: oneDNN where the processor has it, otherwise "
         "float32\n";
}

}  // namespace candelabra::cpu
