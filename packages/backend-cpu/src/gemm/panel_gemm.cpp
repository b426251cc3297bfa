#include "gemm/panel_gemm.hpp"

namespace candelabra::cpu {
namespace {

GemmLoop<float> floats_loop = nullptr;
GemmLoop<double> doubles_loop = nullptr;

// For fewer rows than this, transposing the right factor costs more than MKL's dot products. One
// column is a vector as well.
template <typename T>
bool is_vector(const Gemm<T>& p) {
  return p.n == 1 || (p.transpose_b && p.m < 4);
}

template <typename T>
bool has_few_multiplications(const Gemm<T>& p, double few) {
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) <= few;
}

}  // namespace

bool is_tiny_product(const Gemm<float>& p) {
  return !is_vector(p) && has_few_multiplications(p, 1 << 15);
}
bool is_tiny_product(const Gemm<double>& p) {
  return !is_vector(p) && has_few_multiplications(p, 1 << 13);
}

// Thresholds tuned against MKL on one thread, for sides of 32 to 512. Panels win if the right
// factor is transposed and has up to 128 columns, or up to 256 for longer sums. Else they win for
// columns that fill a panel, and for up to three panels that are reused often. They lose if a
// transposed left factor is read once per panel.
bool suits_panel_gemm(const Gemm<float>& p) {
  constexpr int64_t shortest = 32, longest = 1024, least_columns = 48, panel_columns = 64, few_rows = 32;
  if (is_vector(p) || p.k < shortest || p.k > longest) return false;
  if (p.transpose_b) return p.n <= 2 * panel_columns || (p.n <= 4 * panel_columns && p.k >= 2 * shortest);
  if (p.n < least_columns) return !p.transpose_a && p.m <= few_rows;
  if (p.n <= panel_columns) return true;
  constexpr int64_t many_rows = 128, often = 1 << 15;
  return !p.transpose_a && p.n <= 3 * panel_columns && p.m >= many_rows && p.m * p.k >= often;
}

void panel_gemm(const Gemm<float>& problem) {
  floats_loop(problem);
}
void panel_gemm(const Gemm<double>& problem) {
  doubles_loop(problem);
}

void use_panel_loops(GemmLoop<float> floats, GemmLoop<double> doubles) {
  floats_loop = floats;
  doubles_loop = doubles;
}

}  // namespace candelabra::cpu
