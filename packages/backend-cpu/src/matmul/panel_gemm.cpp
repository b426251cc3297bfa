#include "panel_gemm.hpp"

namespace candelabra::cpu {
namespace {

GemmLoop<float> floats_loop = nullptr;
GemmLoop<double> doubles_loop = nullptr;

// Turning the right factor round for fewer rows than this costs more than MKL's dot products; one column is a vector, too.
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

// Measured on Cascade Lake beside MKL, on one thread, for sides of 32 to 512: 0.43 to 1.0 of its time where
// the columns of the right factor lie as rows, up to 128 of them, and 0.95 to 1.02 up to 256; else 0.76 to 0.95 for columns that
// fill a panel, and 0.65 to 0.95 for up to three panels that are used often. With fewer columns or more it is 1.0 to 1.2, and so it
// is where the left factor is transposed and read once for each panel.
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
