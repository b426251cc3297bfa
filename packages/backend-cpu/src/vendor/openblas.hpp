// OpenBLAS, from the package scipy-openblas32, under the names that MKL's headers have.
//
// Its functions have a prefix, so that they are not taken for those of another BLAS in the process.
// Its own threads are not used: products and factorizations are divided among ours.
#pragma once

#include <complex>
#include <cstddef>
#include <utility>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#define LAPACK_GLOBAL(name, NAME) scipy_##name##_
#include <cblas.h>
#include <lapack.h>
#undef lapack_int  // a macro

extern "C" {
void scipy_sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                  const float* alpha, const float* a, const int* lda, const float* b, const int* ldb, const float* beta,
                  float* c, const int* ldc);
void scipy_strsm_(const char* side, const char* part, const char* transpose, const char* diagonal, const int* m,
                  const int* n, const float* alpha, const float* a, const int* lda, float* b, const int* ldb);
void scipy_ssyrk_(const char* part, const char* transpose, const int* n, const int* k, const float* alpha,
                  const float* a, const int* lda, const float* beta, float* c, const int* ldc);
void scipy_dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                  const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
                  const double* beta, double* c, const int* ldc);
void scipy_dtrsm_(const char* side, const char* part, const char* transpose, const char* diagonal, const int* m,
                  const int* n, const double* alpha, const double* a, const int* lda, double* b, const int* ldb);
void scipy_dsyrk_(const char* part, const char* transpose, const int* n, const int* k, const double* alpha,
                  const double* a, const int* lda, const double* beta, double* c, const int* ldc);
void scipy_cgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                  const std::complex<float>* alpha, const std::complex<float>* a, const int* lda,
                  const std::complex<float>* b, const int* ldb, const std::complex<float>* beta, std::complex<float>* c,
                  const int* ldc);
void scipy_ctrsm_(const char* side, const char* part, const char* transpose, const char* diagonal, const int* m,
                  const int* n, const std::complex<float>* alpha, const std::complex<float>* a, const int* lda,
                  std::complex<float>* b, const int* ldb);
void scipy_cherk_(const char* part, const char* transpose, const int* n, const int* k, const float* alpha,
                  const std::complex<float>* a, const int* lda, const float* beta, std::complex<float>* c,
                  const int* ldc);
void scipy_zgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
                  const std::complex<double>* alpha, const std::complex<double>* a, const int* lda,
                  const std::complex<double>* b, const int* ldb, const std::complex<double>* beta,
                  std::complex<double>* c, const int* ldc);
void scipy_ztrsm_(const char* side, const char* part, const char* transpose, const char* diagonal, const int* m,
                  const int* n, const std::complex<double>* alpha, const std::complex<double>* a, const int* lda,
                  std::complex<double>* b, const int* ldb);
void scipy_zherk_(const char* part, const char* transpose, const int* n, const int* k, const double* alpha,
                  const std::complex<double>* a, const int* lda, const double* beta, std::complex<double>* c,
                  const int* ldc);
void scipy_openblas_set_num_threads(int count);
}

namespace candelabra::cpu {

using BlasInteger = blasint;

// A routine in Fortran, which takes the lengths of its texts after its arguments: 1 each.
template <typename... P>
struct Routine {
  void (*function)(P...);

  template <typename... A>
  void operator()(A... given) const {
    [&]<size_t... texts>(std::index_sequence<texts...>) {
      function(given..., (static_cast<void>(texts), size_t{1})...);
    }(std::make_index_sequence<sizeof...(P) - sizeof...(A)>{});
  }
};

inline constexpr auto cblas_sgemm = scipy_cblas_sgemm;
inline constexpr auto cblas_dgemm = scipy_cblas_dgemm;
inline constexpr auto cblas_cgemm = scipy_cblas_cgemm;
inline constexpr auto cblas_zgemm = scipy_cblas_zgemm;
inline constexpr auto cblas_sgemv = scipy_cblas_sgemv;
inline constexpr auto cblas_dgemv = scipy_cblas_dgemv;
inline constexpr auto cblas_cgemv = scipy_cblas_cgemv;
inline constexpr auto cblas_zgemv = scipy_cblas_zgemv;
inline constexpr auto cblas_sgemm_batch_strided = scipy_cblas_sgemm_batch_strided;
inline constexpr auto cblas_dgemm_batch_strided = scipy_cblas_dgemm_batch_strided;
inline constexpr auto cblas_cgemm_batch_strided = scipy_cblas_cgemm_batch_strided;
inline constexpr auto cblas_zgemm_batch_strided = scipy_cblas_zgemm_batch_strided;

inline constexpr auto strsm = scipy_strsm_;
inline constexpr auto sgemm = scipy_sgemm_;
inline constexpr auto ssyrk = scipy_ssyrk_;
inline constexpr auto dtrsm = scipy_dtrsm_;
inline constexpr auto dgemm = scipy_dgemm_;
inline constexpr auto dsyrk = scipy_dsyrk_;
inline constexpr auto ctrsm = scipy_ctrsm_;
inline constexpr auto cgemm = scipy_cgemm_;
inline constexpr auto cherk = scipy_cherk_;
inline constexpr auto ztrsm = scipy_ztrsm_;
inline constexpr auto zgemm = scipy_zgemm_;
inline constexpr auto zherk = scipy_zherk_;
inline constexpr Routine spotrf_{scipy_spotrf_};
inline constexpr Routine sgetrf_{scipy_sgetrf_};
inline constexpr Routine sgetrs_{scipy_sgetrs_};
inline constexpr Routine sgetri_{scipy_sgetri_};
inline constexpr Routine sgesv_{scipy_sgesv_};
inline constexpr Routine sgeqrf_{scipy_sgeqrf_};
inline constexpr Routine sorgqr_{scipy_sorgqr_};
inline constexpr Routine sormqr_{scipy_sormqr_};
inline constexpr Routine slaswp_{scipy_slaswp_};
inline constexpr Routine ssytrf_{scipy_ssytrf_};
inline constexpr Routine ssytrs_{scipy_ssytrs_};
inline constexpr Routine ssyevd_{scipy_ssyevd_};
inline constexpr Routine sgeev_{scipy_sgeev_};
inline constexpr Routine sgesdd_{scipy_sgesdd_};
inline constexpr Routine sgels_{scipy_sgels_};
inline constexpr Routine sgelsy_{scipy_sgelsy_};
inline constexpr Routine sgelsd_{scipy_sgelsd_};
inline constexpr Routine sgelss_{scipy_sgelss_};
inline constexpr Routine dpotrf_{scipy_dpotrf_};
inline constexpr Routine dgetrf_{scipy_dgetrf_};
inline constexpr Routine dgetrs_{scipy_dgetrs_};
inline constexpr Routine dgetri_{scipy_dgetri_};
inline constexpr Routine dgesv_{scipy_dgesv_};
inline constexpr Routine dgeqrf_{scipy_dgeqrf_};
inline constexpr Routine dorgqr_{scipy_dorgqr_};
inline constexpr Routine dormqr_{scipy_dormqr_};
inline constexpr Routine dlaswp_{scipy_dlaswp_};
inline constexpr Routine dsytrf_{scipy_dsytrf_};
inline constexpr Routine dsytrs_{scipy_dsytrs_};
inline constexpr Routine dsyevd_{scipy_dsyevd_};
inline constexpr Routine dgeev_{scipy_dgeev_};
inline constexpr Routine dgesdd_{scipy_dgesdd_};
inline constexpr Routine dgels_{scipy_dgels_};
inline constexpr Routine dgelsy_{scipy_dgelsy_};
inline constexpr Routine dgelsd_{scipy_dgelsd_};
inline constexpr Routine dgelss_{scipy_dgelss_};
inline constexpr Routine cpotrf_{scipy_cpotrf_};
inline constexpr Routine cgetrf_{scipy_cgetrf_};
inline constexpr Routine cgetrs_{scipy_cgetrs_};
inline constexpr Routine cgetri_{scipy_cgetri_};
inline constexpr Routine cgesv_{scipy_cgesv_};
inline constexpr Routine cgeqrf_{scipy_cgeqrf_};
inline constexpr Routine cungqr_{scipy_cungqr_};
inline constexpr Routine cunmqr_{scipy_cunmqr_};
inline constexpr Routine claswp_{scipy_claswp_};
inline constexpr Routine csytrf_{scipy_csytrf_};
inline constexpr Routine chetrf_{scipy_chetrf_};
inline constexpr Routine csytrs_{scipy_csytrs_};
inline constexpr Routine chetrs_{scipy_chetrs_};
inline constexpr Routine cheevd_{scipy_cheevd_};
inline constexpr Routine cgeev_{scipy_cgeev_};
inline constexpr Routine cgesdd_{scipy_cgesdd_};
inline constexpr Routine cgels_{scipy_cgels_};
inline constexpr Routine cgelsy_{scipy_cgelsy_};
inline constexpr Routine cgelsd_{scipy_cgelsd_};
inline constexpr Routine cgelss_{scipy_cgelss_};
inline constexpr Routine zpotrf_{scipy_zpotrf_};
inline constexpr Routine zgetrf_{scipy_zgetrf_};
inline constexpr Routine zgetrs_{scipy_zgetrs_};
inline constexpr Routine zgetri_{scipy_zgetri_};
inline constexpr Routine zgesv_{scipy_zgesv_};
inline constexpr Routine zgeqrf_{scipy_zgeqrf_};
inline constexpr Routine zungqr_{scipy_zungqr_};
inline constexpr Routine zunmqr_{scipy_zunmqr_};
inline constexpr Routine zlaswp_{scipy_zlaswp_};
inline constexpr Routine zsytrf_{scipy_zsytrf_};
inline constexpr Routine zhetrf_{scipy_zhetrf_};
inline constexpr Routine zsytrs_{scipy_zsytrs_};
inline constexpr Routine zhetrs_{scipy_zhetrs_};
inline constexpr Routine zheevd_{scipy_zheevd_};
inline constexpr Routine zgeev_{scipy_zgeev_};
inline constexpr Routine zgesdd_{scipy_zgesdd_};
inline constexpr Routine zgels_{scipy_zgels_};
inline constexpr Routine zgelsy_{scipy_zgelsy_};
inline constexpr Routine zgelsd_{scipy_zgelsd_};
inline constexpr Routine zgelss_{scipy_zgelss_};

}  // namespace candelabra::cpu
