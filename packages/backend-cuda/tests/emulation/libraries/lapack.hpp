// MKL's LAPACK routines under one name for the four types, for the emulated cuBLAS and cuSOLVER.
#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#define MKL_Complex8 std::complex<float>
#define MKL_Complex16 std::complex<double>
#include <mkl_blas.h>
#include <mkl_lapack.h>

namespace emulation {

template <typename T>
constexpr bool is_complex = false;
template <typename R>
constexpr bool is_complex<std::complex<R>> = true;
template <typename T>
struct RealOf {
  using type = T;
};
template <typename R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <typename T>
using Real = typename RealOf<T>::type;

template <typename T>
struct Lapack;
template <>
struct Lapack<float> {
  static constexpr auto potrf = spotrf_;
  static constexpr auto getrf = sgetrf_;
  static constexpr auto getri = sgetri_;
  static constexpr auto getrs = sgetrs_;
  static constexpr auto geqrf = sgeqrf_;
  static constexpr auto orgqr = sorgqr_;
  static constexpr auto sytrf = ssytrf_;
  static constexpr auto trsm = strsm;
  static constexpr auto syev = ssyev_;
  static constexpr auto geev = sgeev_;
  static constexpr auto gesvd = sgesvd_;
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = dpotrf_;
  static constexpr auto getrf = dgetrf_;
  static constexpr auto getri = dgetri_;
  static constexpr auto getrs = dgetrs_;
  static constexpr auto geqrf = dgeqrf_;
  static constexpr auto orgqr = dorgqr_;
  static constexpr auto sytrf = dsytrf_;
  static constexpr auto trsm = dtrsm;
  static constexpr auto syev = dsyev_;
  static constexpr auto geev = dgeev_;
  static constexpr auto gesvd = dgesvd_;
};
template <>
struct Lapack<std::complex<float>> {
  static constexpr auto potrf = cpotrf_;
  static constexpr auto getrf = cgetrf_;
  static constexpr auto getri = cgetri_;
  static constexpr auto getrs = cgetrs_;
  static constexpr auto geqrf = cgeqrf_;
  static constexpr auto orgqr = cungqr_;
  static constexpr auto sytrf = csytrf_;
  static constexpr auto trsm = ctrsm;
  static constexpr auto syev = cheev_;
  static constexpr auto geev = cgeev_;
  static constexpr auto gesvd = cgesvd_;
};
template <>
struct Lapack<std::complex<double>> {
  static constexpr auto potrf = zpotrf_;
  static constexpr auto getrf = zgetrf_;
  static constexpr auto getri = zgetri_;
  static constexpr auto getrs = zgetrs_;
  static constexpr auto geqrf = zgeqrf_;
  static constexpr auto orgqr = zungqr_;
  static constexpr auto sytrf = zsytrf_;
  static constexpr auto trsm = ztrsm;
  static constexpr auto syev = zheev_;
  static constexpr auto geev = zgeev_;
  static constexpr auto gesvd = zgesvd_;
};

// Calls call(work, size) with size -1 to query the workspace size, then again to do the work.
template <typename T, typename F>
void with_work(F&& call) {
  T wanted{};
  int query = -1;
  call(&wanted, &query);
  int size = std::max(1, static_cast<int>(std::real(wanted)));
  std::vector<T> work(static_cast<size_t>(size));
  call(work.data(), &size);
}

// Overwrites a workspace, whose contents the caller must not use.
inline void clobber(void* memory, size_t bytes) {
  if (memory && bytes) std::memset(memory, 0xf7, bytes);
}

// LU factorization without pivoting, column-major. A zero pivot is reported, and divided by.
template <typename T>
int factor_without_pivots(T* a, int rows, int columns, int leading) {
  int info = 0;
  for (int k = 0; k < std::min(rows, columns); ++k) {
    const T pivot = a[k + static_cast<long>(k) * leading];
    if (pivot == T(0) && info == 0) info = k + 1;
    for (int i = k + 1; i < rows; ++i) a[i + static_cast<long>(k) * leading] /= pivot;
    for (int j = k + 1; j < columns; ++j)
      for (int i = k + 1; i < rows; ++i)
        a[i + static_cast<long>(j) * leading] -=
            a[i + static_cast<long>(k) * leading] * a[k + static_cast<long>(j) * leading];
  }
  return info;
}

// LAPACK's type for CUDA's.
template <typename T>
struct HostOf {
  using type = T;
};
template <>
struct HostOf<float2> {
  using type = std::complex<float>;
};
template <>
struct HostOf<double2> {
  using type = std::complex<double>;
};
template <typename T>
using Host = typename HostOf<T>::type;

}  // namespace emulation
