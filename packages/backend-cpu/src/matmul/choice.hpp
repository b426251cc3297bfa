// Which library multiplies float32 matrices, decided once per shape class by timing them on this processor: MKL, oneDNN, our own
// panels (panel_gemm.hpp), or, for much work on a processor that has them, the tile units (split/split_gemm.hpp).
#pragma once

#include <string>

#include "gemm.hpp"

namespace candelabra::cpu {

enum class GemmLibrary { mkl, onednn, tiles, panels };

// Problems that favour the same library: few operations (the call itself counts), a side too short for register blocks
// (memory-bound), few columns that do not fill the blocks, everything else; of that, what has work for the tile units; and of all
// these what our own panels are for.
enum class ShapeClass { small, narrow, slender, large, heavy, compact };
constexpr int shape_class_count = 6;

// By the sizes alone: not compact.
ShapeClass shape_class(int64_t m, int64_t n, int64_t k);

// Small products stay on the caller's thread: what a second core writes has to come back through the shared cache, which costs
// the operations around the product more than the product gains.
inline int32_t threads_for(ShapeClass shape) {
  return shape == ShapeClass::small ? 1 : INT32_MAX;
}

// The same for many products in one call: a team pays from so many multiplications on.
inline int32_t threads_for_batch(int64_t multiplications) {
  return multiplications <= (int64_t{1} << 17) ? 1 : INT32_MAX;
}

// The choice for this class. The first call for a class times the libraries (some milliseconds) unless the environment variable
// CANDELABRA_CPU_GEMM (mkl, onednn, tiles or panels) decides.
GemmLibrary choose_gemm_library(ShapeClass shape);

// Whether the environment variable names this library.
bool is_named(GemmLibrary library);

// Whether panels of our own are what makes this product.
bool chooses_panels(const Gemm<float>& problem);
bool chooses_panels(const Gemm<double>& problem);

// Whether kernels that have float32 products of their own may make them on tile units: there are some, and the environment variable
// does not name a library.
bool may_use_tiles();

// What the choice is between, with split_gemm() and panel_gemm(); all do what gemm() promises.
void gemm_by_mkl(const Gemm<float>& problem);
void gemm_by_onednn(const Gemm<float>& problem);

std::string describe_gemm_choices();

}  // namespace candelabra::cpu
