// Our own matrix products, for factors that stay in the caches. There a library spends much of its
// time on packing and on call overhead. For a factor of many products, see gemm/panels.hpp.
#pragma once

#include "gemm/gemm.hpp"

namespace candelabra::cpu {

// Whether the call of a library would take most of the time, so that nothing needs to be measured.
bool is_tiny_product(const Gemm<float>& problem);
bool is_tiny_product(const Gemm<double>& problem);
// Whether panels may be faster than a library for a product that is not tiny.
bool suits_panel_gemm(const Gemm<float>& problem);

// Fulfils gemm()'s contract on the caller's thread. Each element is a sum along k in parts of a
// fixed length, so callers may divide rows among threads.
void panel_gemm(const Gemm<float>& problem);
void panel_gemm(const Gemm<double>& problem);

// The loops are compiled per instruction set (gemm/panel_loops.cpp). The kernels of the one in
// use register them here.
template <typename T>
using GemmLoop = void (*)(const Gemm<T>& problem);
void use_panel_loops(GemmLoop<float> floats, GemmLoop<double> doubles);

}  // namespace candelabra::cpu
