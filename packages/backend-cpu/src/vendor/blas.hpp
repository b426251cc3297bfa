// The BLAS and the LAPACK that the library is built with, which CANDELABRA_BLAS chooses in
// CMakeLists.txt.
//
// Both have 32-bit integers.
#pragma once

#include <complex>

#if CANDELABRA_OPENBLAS
#include "vendor/openblas.hpp"
#else
#define MKL_Complex8 std::complex<float>
#define MKL_Complex16 std::complex<double>
#include <mkl_blas.h>
#include <mkl_cblas.h>
#include <mkl_lapack.h>
#endif

namespace candelabra::cpu {

// The name, and what CANDELABRA_CPU_GEMM calls it.
#if CANDELABRA_OPENBLAS
constexpr const char* blas_name = "OpenBLAS";
constexpr const char* blas_setting = "openblas";
#else
using BlasInteger = MKL_INT;
constexpr const char* blas_name = "MKL";
constexpr const char* blas_setting = "mkl";
#endif

// Leaves the library no threads of its own, where it would not take them from libgomp, and lets its
// long factorizations be interrupted, where it can.
void prepare_blas();

}  // namespace candelabra::cpu
