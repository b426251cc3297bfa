// Autotuning of float32 matrix products: times the candidates once per shape class and
// processor. Candidates are BLAS (MKL, or OpenBLAS), oneDNN, our own panels (panel_gemm.hpp), and
// for large products AMX, by bf16x3 emulation of float32 (gemm/amx/bf16x3_gemm.hpp).
#pragma once

#include <string>

#include "gemm/gemm.hpp"

namespace candelabra::cpu {

enum class GemmLibrary { blas, onednn, amx, panels };

// Shapes that favour the same library:
//   small: so few operations that the call itself counts,
//   narrow: a side too short for register blocks, so that memory is the limit,
//   slender: too few columns to fill the register blocks,
//   large: everything else,
//   heavy: of the large ones, those with enough work for AMX,
//   compact: of all these, those that our own panels may be best for (suits_panel_gemm).
enum class ShapeClass { small, narrow, slender, large, heavy, compact };
constexpr int shape_class_count = 6;

// The class by the sizes alone, which is never compact.
ShapeClass shape_class(int64_t m, int64_t n, int64_t k);

// Small products stay on the caller's thread. What a second core writes returns through the shared
// cache, which costs the operations around the product more than it saves.
inline int32_t threads_for(ShapeClass shape) {
  return shape == ShapeClass::small ? 1 : INT32_MAX;
}

// The same for a batch of products: a team pays off above this many multiplications.
inline int32_t threads_for_batch(int64_t multiplications) {
  return multiplications <= (int64_t{1} << 17) ? 1 : INT32_MAX;
}

// The library for this class. The first call for a class times the candidates, unless the
// environment variable CANDELABRA_CPU_GEMM (mkl or openblas, onednn, amx, panels) names one, or an
// earlier process has stored its choice (choice_file.hpp).
GemmLibrary choose_gemm_library(ShapeClass shape);

// Whether the environment variable names this library.
bool is_named(GemmLibrary library);

// Whether our own panels compute this product.
bool chooses_panels(const Gemm<float>& problem);
bool chooses_panels(const Gemm<double>& problem);

// Whether kernels with float32 products of their own may use AMX: it is available, and
// CANDELABRA_CPU_GEMM names no other library.
bool may_use_amx();

// The candidates besides amx_gemm() and panel_gemm(). All fulfil gemm()'s contract.
void gemm_by_blas(const Gemm<float>& problem);
void gemm_by_onednn(const Gemm<float>& problem);

std::string describe_gemm_choices();

}  // namespace candelabra::cpu
