// Products of our own: of factors that stay in the caches, where a library spends its time on packing them and on being called.
#pragma once

#include "gemm.hpp"

namespace candelabra::cpu {

// Whether a product is so small that calling a library is most of its time: nothing to be measured.
bool is_tiny_product(const Gemm<float>& problem);
bool is_tiny_product(const Gemm<double>& problem);
// Whether panels may be quicker than a library for a product that is not tiny.
bool suits_panel_gemm(const Gemm<float>& problem);

// What gemm() promises, on the caller's thread. Each element is a chain of additions along k, in parts of a fixed length: rows may
// be divided among threads.
void panel_gemm(const Gemm<float>& problem);
void panel_gemm(const Gemm<double>& problem);

// The loops are compiled for each instruction set (drivers/panel_gemm.cpp), and brought here by the kernels of the one in use.
template <typename T>
using GemmLoop = void (*)(const Gemm<T>& problem);
void use_panel_loops(GemmLoop<float> floats, GemmLoop<double> doubles);

}  // namespace candelabra::cpu
