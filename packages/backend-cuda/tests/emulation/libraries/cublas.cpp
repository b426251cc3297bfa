// The functions of classic cuBLAS that the backend calls, on LAPACK.
#include <cublas_v2.h>

#include "emulation.hpp"
#include "lapack.hpp"

using namespace emulation;

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace {

template <typename F>
cublasStatus_t queued(cublasHandle_t handle, F work) {
  void* const memory = handle->workspace;
  const size_t bytes = std::min<size_t>(handle->workspace_bytes, 256);
  const cudaError_t error = queue(handle->stream, [=] {
    clobber(memory, bytes);
    work();
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char* letter(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? "N" : operation == CUBLAS_OP_T ? "T" : "C";
}

template <typename T>
void trsm_one(cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t operation, cublasDiagType_t diagonal,
              int m, int n, T alpha, const T* a, int a_leading, T* b, int b_leading) {
  Lapack<T>::trsm(side == CUBLAS_SIDE_LEFT ? "L" : "R", part == CUBLAS_FILL_MODE_UPPER ? "U" : "L", letter(operation),
                  diagonal == CUBLAS_DIAG_UNIT ? "U" : "N", &m, &n, &alpha, a, &a_leading, b, &b_leading);
}

template <typename D>
cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t operation,
                    cublasDiagType_t diagonal, int64_t m, int64_t n, const D* alpha, const D* a, int64_t a_leading,
                    D* b, int64_t b_leading) {
  using T = Host<D>;
  const int64_t size = side == CUBLAS_SIDE_LEFT ? m : n;
  if (a_leading < std::max<int64_t>(1, size) || b_leading < std::max<int64_t>(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  const T factor = *reinterpret_cast<const T*>(alpha);
  return queued(handle, [=] {
    trsm_one<T>(side, part, operation, diagonal, static_cast<int>(m), static_cast<int>(n), factor,
                reinterpret_cast<const T*>(a), static_cast<int>(a_leading), reinterpret_cast<T*>(b),
                static_cast<int>(b_leading));
  });
}

template <typename D>
cublasStatus_t trsm_batched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,
                            cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n, const D* alpha,
                            const D* const* a, int a_leading, D* const* b, int b_leading, int batches) {
  using T = Host<D>;
  if (a_leading < std::max(1, side == CUBLAS_SIDE_LEFT ? m : n) || b_leading < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const T factor = *reinterpret_cast<const T*>(alpha);
  return queued(handle, [=] {
    for (int i = 0; i < batches; ++i)
      trsm_one<T>(side, part, operation, diagonal, m, n, factor, reinterpret_cast<const T*>(a[i]), a_leading,
                  reinterpret_cast<T*>(b[i]), b_leading);
  });
}

template <typename D>
cublasStatus_t getrf_batched(cublasHandle_t handle, int n, D* const* a, int leading, int* pivots, int* info,
                             int batches) {
  using T = Host<D>;
  if (n < 0 || leading < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(handle, [=] {
    for (int i = 0; i < batches; ++i) {
      auto* matrix = reinterpret_cast<T*>(a[i]);
      if (pivots)
        Lapack<T>::getrf(&n, &n, matrix, &leading, pivots + static_cast<long>(i) * n, info + i);
      else
        info[i] = factor_without_pivots(matrix, n, n, leading);
    }
  });
}

template <typename D>
cublasStatus_t getri_batched(cublasHandle_t handle, int n, const D* const* a, int a_leading, const int* pivots,
                             D* const* c, int c_leading, int* info, int batches) {
  using T = Host<D>;
  if (n < 0 || a_leading < std::max(1, n) || c_leading < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(handle, [=] {
    for (int i = 0; i < batches; ++i) {
      auto* to = reinterpret_cast<T*>(c[i]);
      for (int j = 0; j < n; ++j)
        std::memcpy(to + static_cast<long>(j) * c_leading, a[i] + static_cast<long>(j) * a_leading,
                    static_cast<size_t>(n) * sizeof(T));
      with_work<T>([&](T* work, int* size) {
        Lapack<T>::getri(&n, to, &c_leading, pivots + static_cast<long>(i) * n, work, size, info + i);
      });
    }
  });
}

template <typename D>
cublasStatus_t getrs_batched(cublasHandle_t handle, cublasOperation_t operation, int n, int right, const D* const* a,
                             int a_leading, const int* pivots, D* const* b, int b_leading, int* info, int batches) {
  using T = Host<D>;
  *info = n < 0 ? -2 : right < 0 ? -3 : a_leading < std::max(1, n) ? -5 : b_leading < std::max(1, n) ? -8 : 0;
  if (*info) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(handle, [=] {
    for (int i = 0; i < batches; ++i) {
      int found = 0;
      Lapack<T>::getrs(letter(operation), &n, &right, reinterpret_cast<const T*>(a[i]), &a_leading,
                       pivots + static_cast<long>(i) * n, reinterpret_cast<T*>(b[i]), &b_leading, &found);
    }
  });
}

template <typename D>
cublasStatus_t geqrf_batched(cublasHandle_t handle, int m, int n, D* const* a, int leading, D* const* scales, int* info,
                             int batches) {
  using T = Host<D>;
  *info = m < 0 ? -1 : n < 0 ? -2 : leading < std::max(1, m) ? -4 : 0;
  if (*info) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(handle, [=] {
    for (int i = 0; i < batches; ++i) {
      int found = 0;
      with_work<T>([&](T* work, int* size) {
        Lapack<T>::geqrf(&m, &n, reinterpret_cast<T*>(a[i]), &leading, reinterpret_cast<T*>(scales[i]), work, size,
                         &found);
      });
    }
  });
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // as the real library does
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                 : "CUBLAS_STATUS_EXECUTION_FAILED";
}

// One function per type; only the names differ.
#define FOR_EACH_TYPE(define) define(S, float) define(D, double) define(C, cuComplex) define(Z, cuDoubleComplex)
#define DEFINE(letter, type)                                                                                           \
  cublasStatus_t cublas##letter##trsm_v2_64(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,       \
                                            cublasOperation_t operation, cublasDiagType_t diagonal, int64_t m,         \
                                            int64_t n, const type* alpha, const type* a, int64_t a_leading, type* b,   \
                                            int64_t b_leading) {                                                       \
    return trsm(handle, side, part, operation, diagonal, m, n, alpha, a, a_leading, b, b_leading);                     \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part,      \
                                             cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,     \
                                             const type* alpha, const type* const a[], int a_leading, type* const b[], \
                                             int b_leading, int batches) {                                             \
    return trsm_batched(handle, side, part, operation, diagonal, m, n, alpha, a, a_leading, b, b_leading, batches);    \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, type* const a[], int leading, int* pivots, \
                                              int* info, int batches) {                                                \
    return getrf_batched(handle, n, a, leading, pivots, info, batches);                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##getriBatched(cublasHandle_t handle, int n, const type* const a[], int a_leading,      \
                                              const int* pivots, type* const c[], int c_leading, int* info,            \
                                              int batches) {                                                           \
    return getri_batched(handle, n, a, a_leading, pivots, c, c_leading, info, batches);                                \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t handle, cublasOperation_t operation, int n, int right,    \
                                              const type* const a[], int a_leading, const int* pivots,                 \
                                              type* const b[], int b_leading, int* info, int batches) {                \
    return getrs_batched(handle, operation, n, right, a, a_leading, pivots, b, b_leading, info, batches);              \
  }                                                                                                                    \
  cublasStatus_t cublas##letter##geqrfBatched(cublasHandle_t handle, int m, int n, type* const a[], int leading,       \
                                              type* const scales[], int* info, int batches) {                          \
    return geqrf_batched(handle, m, n, a, leading, scales, info, batches);                                             \
  }
FOR_EACH_TYPE(DEFINE)

}  // extern "C"
