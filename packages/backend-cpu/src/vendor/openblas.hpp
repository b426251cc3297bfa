// OpenBLAS, from the package scipy-openblas32, under the names that MKL's headers have.
//
// Its functions have a prefix, so that they are not taken for those of another BLAS in the process.
// Its own threads are not used: products and factorizations are divided among ours.
#pragma once

#include <complex>

#define LAPACK_COMPLEX_CUSTOM
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#define LAPACK_GLOBAL(name, NAME) scipy_##name##_
#include <cblas.h>
#include <lapack.h>

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
inline constexpr auto spotrf_ = scipy_spotrf_;
inline constexpr auto sgetrf_ = scipy_sgetrf_;
inline constexpr auto sgetrs_ = scipy_sgetrs_;
inline constexpr auto sgetri_ = scipy_sgetri_;
inline constexpr auto sgesv_ = scipy_sgesv_;
inline constexpr auto sgeqrf_ = scipy_sgeqrf_;
inline constexpr auto sorgqr_ = scipy_sorgqr_;
inline constexpr auto sormqr_ = scipy_sormqr_;
inline constexpr auto slaswp_ = scipy_slaswp_;
inline constexpr auto ssytrf_ = scipy_ssytrf_;
inline constexpr auto ssytrs_ = scipy_ssytrs_;
inline constexpr auto ssyevd_ = scipy_ssyevd_;
inline constexpr auto sgeev_ = scipy_sgeev_;
inline constexpr auto sgesdd_ = scipy_sgesdd_;
inline constexpr auto sgels_ = scipy_sgels_;
inline constexpr auto sgelsy_ = scipy_sgelsy_;
inline constexpr auto sgelsd_ = scipy_sgelsd_;
inline constexpr auto sgelss_ = scipy_sgelss_;
inline constexpr auto dpotrf_ = scipy_dpotrf_;
inline constexpr auto dgetrf_ = scipy_dgetrf_;
inline constexpr auto dgetrs_ = scipy_dgetrs_;
inline constexpr auto dgetri_ = scipy_dgetri_;
inline constexpr auto dgesv_ = scipy_dgesv_;
inline constexpr auto dgeqrf_ = scipy_dgeqrf_;
inline constexpr auto dorgqr_ = scipy_dorgqr_;
inline constexpr auto dormqr_ = scipy_dormqr_;
inline constexpr auto dlaswp_ = scipy_dlaswp_;
inline constexpr auto dsytrf_ = scipy_dsytrf_;
inline constexpr auto dsytrs_ = scipy_dsytrs_;
inline constexpr auto dsyevd_ = scipy_dsyevd_;
inline constexpr auto dgeev_ = scipy_dgeev_;
inline constexpr auto dgesdd_ = scipy_dgesdd_;
inline constexpr auto dgels_ = scipy_dgels_;
inline constexpr auto dgelsy_ = scipy_dgelsy_;
inline constexpr auto dgelsd_ = scipy_dgelsd_;
inline constexpr auto dgelss_ = scipy_dgelss_;
inline constexpr auto cpotrf_ = scipy_cpotrf_;
inline constexpr auto cgetrf_ = scipy_cgetrf_;
inline constexpr auto cgetrs_ = scipy_cgetrs_;
inline constexpr auto cgetri_ = scipy_cgetri_;
inline constexpr auto cgesv_ = scipy_cgesv_;
inline constexpr auto cgeqrf_ = scipy_cgeqrf_;
inline constexpr auto cungqr_ = scipy_cungqr_;
inline constexpr auto cunmqr_ = scipy_cunmqr_;
inline constexpr auto claswp_ = scipy_claswp_;
inline constexpr auto csytrf_ = scipy_csytrf_;
inline constexpr auto chetrf_ = scipy_chetrf_;
inline constexpr auto csytrs_ = scipy_csytrs_;
inline constexpr auto chetrs_ = scipy_chetrs_;
inline constexpr auto cheevd_ = scipy_cheevd_;
inline constexpr auto cgeev_ = scipy_cgeev_;
inline constexpr auto cgesdd_ = scipy_cgesdd_;
inline constexpr auto cgels_ = scipy_cgels_;
inline constexpr auto cgelsy_ = scipy_cgelsy_;
inline constexpr auto cgelsd_ = scipy_cgelsd_;
inline constexpr auto cgelss_ = scipy_cgelss_;
inline constexpr auto zpotrf_ = scipy_zpotrf_;
inline constexpr auto zgetrf_ = scipy_zgetrf_;
inline constexpr auto zgetrs_ = scipy_zgetrs_;
inline constexpr auto zgetri_ = scipy_zgetri_;
inline constexpr auto zgesv_ = scipy_zgesv_;
inline constexpr auto zgeqrf_ = scipy_zgeqrf_;
inline constexpr auto zungqr_ = scipy_zungqr_;
inline constexpr auto zunmqr_ = scipy_zunmqr_;
inline constexpr auto zlaswp_ = scipy_zlaswp_;
inline constexpr auto zsytrf_ = scipy_zsytrf_;
inline constexpr auto zhetrf_ = scipy_zhetrf_;
inline constexpr auto zsytrs_ = scipy_zsytrs_;
inline constexpr auto zhetrs_ = scipy_zhetrs_;
inline constexpr auto zheevd_ = scipy_zheevd_;
inline constexpr auto zgeev_ = scipy_zgeev_;
inline constexpr auto zgesdd_ = scipy_zgesdd_;
inline constexpr auto zgels_ = scipy_zgels_;
inline constexpr auto zgelsy_ = scipy_zgelsy_;
inline constexpr auto zgelsd_ = scipy_zgelsd_;
inline constexpr auto zgelss_ = scipy_zgelss_;

}  // namespace candelabra::cpu
