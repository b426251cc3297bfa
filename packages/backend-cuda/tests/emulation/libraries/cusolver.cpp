// The functions of cuSOLVER that the backend calls, on LAPACK.
#include <cusolverDn.h>

#include "emulation.hpp"
#include "lapack.hpp"

using namespace emulation;

struct cusolverDnContext {
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};
struct gesvdjInfo {};

namespace {

constexpr size_t device_work = 192, host_work = 64;
constexpr int work_size = 24;  // elements

template <typename F>
cusolverStatus_t queued(cusolverDnHandle_t handle, void* memory, size_t bytes, F work) {
  const cudaError_t error = queue(handle->stream, [=] {
    clobber(memory, bytes);
    work();
  });
  return error == cudaSuccess ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

cusolverStatus_t sizes(bool right, size_t* on_device, size_t* on_host) {
  if (!right) return CUSOLVER_STATUS_INVALID_VALUE;
  *on_device = device_work;
  *on_host = host_work;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t size(bool right, int* elements) {
  *elements = work_size;
  return right ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

// Whether the workspaces are given. Clobbers the one on the host immediately.
bool has_work(void* device, size_t device_bytes, void* host, size_t host_bytes) {
  if (!device || device_bytes < device_work || !host || host_bytes < host_work) return false;
  clobber(host, host_bytes);
  return true;
}

template <typename F>
cusolverStatus_t for_type(cudaDataType type, F&& f) {
  switch (type) {
    case CUDA_R_32F:
      return f.template operator()<float>();
    case CUDA_R_64F:
      return f.template operator()<double>();
    case CUDA_C_32F:
      return f.template operator()<std::complex<float>>();
    case CUDA_C_64F:
      return f.template operator()<std::complex<double>>();
    default:
      return CUSOLVER_STATUS_INVALID_VALUE;
  }
}
cudaDataType real_type(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_C_32F ? CUDA_R_32F : CUDA_R_64F;
}
cudaDataType complex_type(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_C_32F ? CUDA_C_32F : CUDA_C_64F;
}

const char* letter(cublasFillMode_t part) {
  return part == CUBLAS_FILL_MODE_UPPER ? "U" : "L";
}

template <typename T>
void eigenvalues(cusolverEigMode_t mode, cublasFillMode_t part, int n, T* a, int leading, Real<T>* values, int* info) {
  std::vector<Real<T>> reals(static_cast<size_t>(std::max(1, 3 * n)));
  with_work<T>([&](T* work, int* size) {
    if constexpr (is_complex<T>)
      Lapack<T>::syev(mode == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N", letter(part), &n, a, &leading, values, work, size,
                      reals.data(), info);
    else
      Lapack<T>::syev(mode == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N", letter(part), &n, a, &leading, values, work, size,
                      info);
  });
}

// A = U S V^H; u of `u_columns` columns, vh square.
template <typename T>
void singular_values(const char* job_u, const char* job_v, int m, int n, T* a, int leading, Real<T>* values, T* u,
                     int u_leading, T* vh, int vh_leading, int* info) {
  std::vector<Real<T>> reals(static_cast<size_t>(std::max(1, 5 * std::min(m, n))));
  with_work<T>([&](T* work, int* size) {
    if constexpr (is_complex<T>)
      Lapack<T>::gesvd(job_u, job_v, &m, &n, a, &leading, values, u, &u_leading, vh, &vh_leading, work, size,
                       reals.data(), info);
    else
      Lapack<T>::gesvd(job_u, job_v, &m, &n, a, &leading, values, u, &u_leading, vh, &vh_leading, work, size, info);
  });
}

// With V instead of its adjoint. Matrices whose first element is above 1000 do not converge, so
// that tests reach the backend's handling of that.
template <typename T>
void jacobi(cusolverEigMode_t mode, bool economical, int m, int n, T* a, int leading, Real<T>* values, T* u,
            int u_leading, T* v, int v_leading, int* info) {
  if (std::abs(a[0]) > 1000) {
    *info = std::min(m, n) + 1;
    return;
  }
  const bool vectors = mode == CUSOLVER_EIG_MODE_VECTOR;
  std::vector<T> vh(static_cast<size_t>(n) * static_cast<size_t>(n));
  const char* job = !vectors ? "N" : economical ? "S" : "A";
  singular_values(job, job, m, n, a, leading, values, u, u_leading, vh.data(), n, info);
  for (int i = 0; vectors && i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const T element = vh[static_cast<size_t>(i) + static_cast<size_t>(j) * static_cast<size_t>(n)];
      if constexpr (is_complex<T>)
        v[j + static_cast<long>(i) * v_leading] = std::conj(element);
      else
        v[j + static_cast<long>(i) * v_leading] = element;
    }
  // The library clobbers its input.
  for (int j = 0; j < n; ++j) clobber(a + static_cast<long>(j) * leading, static_cast<size_t>(m) * sizeof(T));
}

template <typename D>
cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t part, int n, D** a, int leading, int* info,
                               int batches) {
  using T = Host<D>;
  if (leading < std::max(1, n)) return CUSOLVER_STATUS_INVALID_VALUE;
  return queued(handle, nullptr, 0, [=] {
    for (int i = 0; i < batches; ++i)
      Lapack<T>::potrf(letter(part), &n, reinterpret_cast<T*>(a[i]), &leading, info + i);
  });
}

template <typename D>
cusolverStatus_t orgqr(cusolverDnHandle_t handle, int m, int n, int k, D* a, int leading, const D* scales, D* work,
                       int size, int* info) {
  using T = Host<D>;
  if (n > m || k > n || size < work_size || leading < std::max(1, m)) return CUSOLVER_STATUS_INVALID_VALUE;
  return queued(handle, work, work_size * sizeof(T), [=] {
    with_work<T>([&](T* space, int* wanted) {
      Lapack<T>::orgqr(&m, &n, &k, reinterpret_cast<T*>(a), &leading, reinterpret_cast<const T*>(scales), space, wanted,
                       info);
    });
  });
}

template <typename D>
cusolverStatus_t sytrf(cusolverDnHandle_t handle, cublasFillMode_t part, int n, D* a, int leading, int* pivots, D* work,
                       int size, int* info) {
  using T = Host<D>;
  if (size < work_size || leading < std::max(1, n)) return CUSOLVER_STATUS_INVALID_VALUE;
  return queued(handle, work, work_size * sizeof(T), [=] {
    with_work<T>([&](T* space, int* wanted) {
      Lapack<T>::sytrf(letter(part), &n, reinterpret_cast<T*>(a), &leading, pivots, space, wanted, info);
    });
  });
}

template <typename D, typename R>
cusolverStatus_t gesvdj(cusolverDnHandle_t handle, cusolverEigMode_t mode, int economical, int m, int n, D* a,
                        int leading, R* values, D* u, int u_leading, D* v, int v_leading, D* work, int size, int* info,
                        int batches) {
  using T = Host<D>;
  if (size < work_size || leading < std::max(1, m) || u_leading < std::max(1, m) || v_leading < std::max(1, n) || m < n)
    return CUSOLVER_STATUS_INVALID_VALUE;
  return queued(handle, work, work_size * sizeof(T), [=] {
    const long u_columns = economical ? std::min(m, n) : m;
    for (long i = 0; i < batches; ++i)
      jacobi(mode, economical != 0, m, n, reinterpret_cast<T*>(a) + i * leading * n, leading,
             values + i * std::min(m, n),
             reinterpret_cast<T*>(u) + (mode == CUSOLVER_EIG_MODE_VECTOR ? i * u_leading * u_columns : 0), u_leading,
             reinterpret_cast<T*>(v) + (mode == CUSOLVER_EIG_MODE_VECTOR ? i * v_leading * n : 0), v_leading, info + i);
  });
}

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  *handle = new cusolverDnContext();
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* parameters) {
  *parameters = new cusolverDnParams();
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) {
  *info = new gesvdjInfo();
  return CUSOLVER_STATUS_SUCCESS;
}

// ---- one function for all types

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t, int64_t n,
                                             cudaDataType type, const void*, int64_t leading, cudaDataType compute,
                                             size_t* on_device, size_t* on_host) {
  return sizes(type == compute && leading >= std::max<int64_t>(1, n), on_device, on_host);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t part, int64_t n,
                                  cudaDataType type, void* a, int64_t leading, cudaDataType, void* device,
                                  size_t device_bytes, void* host, size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes, [=, n = static_cast<int>(n), leading = static_cast<int>(leading)] {
      Lapack<T>::potrf(letter(part), &n, static_cast<T*>(a), &leading, info);
    });
  });
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t,
                                             cudaDataType type, const void*, int64_t leading, cudaDataType compute,
                                             size_t* on_device, size_t* on_host) {
  return sizes(type == compute && leading >= std::max<int64_t>(1, m), on_device, on_host);
}
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* a, int64_t leading, int64_t* pivots, cudaDataType,
                                  void* device, size_t device_bytes, void* host, size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes,
                  [=, m = static_cast<int>(m), n = static_cast<int>(n), leading = static_cast<int>(leading)] {
                    if (!pivots) {
                      *info = factor_without_pivots(static_cast<T*>(a), m, n, leading);
                      return;
                    }
                    std::vector<int> narrow(static_cast<size_t>(std::max(1, std::min(m, n))));
                    Lapack<T>::getrf(&m, &n, static_cast<T*>(a), &leading, narrow.data(), info);
                    std::copy_n(narrow.begin(), std::min(m, n), pivots);
                  });
  });
}

cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasOperation_t operation, int64_t n,
                                  int64_t right, cudaDataType type, const void* a, int64_t leading,
                                  const int64_t* pivots, cudaDataType, void* b, int64_t b_leading, int* info) {
  if (leading < std::max<int64_t>(1, n) || b_leading < std::max<int64_t>(1, n)) return CUSOLVER_STATUS_INVALID_VALUE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, nullptr, 0,
                  [=, n = static_cast<int>(n), right = static_cast<int>(right), leading = static_cast<int>(leading),
                   b_leading = static_cast<int>(b_leading)] {
                    std::vector<int> narrow(pivots, pivots + n);
                    Lapack<T>::getrs(operation == CUBLAS_OP_N   ? "N"
                                     : operation == CUBLAS_OP_T ? "T"
                                                                : "C",
                                     &n, &right, static_cast<const T*>(a), &leading, narrow.data(), static_cast<T*>(b),
                                     &b_leading, info);
                  });
  });
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, int64_t m, int64_t,
                                             cudaDataType type, const void*, int64_t leading, cudaDataType scales,
                                             const void*, cudaDataType compute, size_t* on_device, size_t* on_host) {
  return sizes(type == compute && type == scales && leading >= std::max<int64_t>(1, m), on_device, on_host);
}
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* a, int64_t leading, cudaDataType, void* scales, cudaDataType,
                                  void* device, size_t device_bytes, void* host, size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes,
                  [=, m = static_cast<int>(m), n = static_cast<int>(n), leading = static_cast<int>(leading)] {
                    with_work<T>([&](T* work, int* size) {
                      Lapack<T>::geqrf(&m, &n, static_cast<T*>(a), &leading, static_cast<T*>(scales), work, size, info);
                    });
                  });
  });
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                             cublasFillMode_t, int64_t n, cudaDataType type, const void*,
                                             int64_t leading, cudaDataType values, const void*, cudaDataType compute,
                                             size_t* on_device, size_t* on_host) {
  return sizes(type == compute && values == real_type(type) && leading >= std::max<int64_t>(1, n), on_device, on_host);
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode,
                                  cublasFillMode_t part, int64_t n, cudaDataType type, void* a, int64_t leading,
                                  cudaDataType, void* values, cudaDataType, void* device, size_t device_bytes,
                                  void* host, size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes, [=] {
      eigenvalues(mode, part, static_cast<int>(n), static_cast<T*>(a), static_cast<int>(leading),
                  static_cast<Real<T>*>(values), info);
    });
  });
}

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                                   cublasFillMode_t, int64_t n, cudaDataType type, const void*,
                                                   int64_t leading, cudaDataType values, const void*,
                                                   cudaDataType compute, size_t* on_device, size_t* on_host, int64_t) {
  return sizes(type == compute && values == real_type(type) && leading >= std::max<int64_t>(1, n), on_device, on_host);
}
cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode,
                                        cublasFillMode_t part, int64_t n, cudaDataType type, void* a, int64_t leading,
                                        cudaDataType, void* values, cudaDataType, void* device, size_t device_bytes,
                                        void* host, size_t host_bytes, int* info, int64_t batches) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes, [=] {
      for (int64_t i = 0; i < batches; ++i)
        eigenvalues(mode, part, static_cast<int>(n), static_cast<T*>(a) + i * leading * n, static_cast<int>(leading),
                    static_cast<Real<T>*>(values) + i * n, info + i);
    });
  });
}

cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t left,
                                            cusolverEigMode_t, int64_t n, cudaDataType type, const void*,
                                            int64_t leading, cudaDataType values, const void*, cudaDataType,
                                            const void*, int64_t, cudaDataType vectors, const void*, int64_t,
                                            cudaDataType compute, size_t* on_device, size_t* on_host) {
  if (left != CUSOLVER_EIG_MODE_NOVECTOR) return CUSOLVER_STATUS_INVALID_VALUE;  // as the library
  return sizes(type == compute && values == complex_type(type) && vectors == type && leading >= std::max<int64_t>(1, n),
               on_device, on_host);
}
cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                 cusolverEigMode_t right, int64_t size, cudaDataType type, void* a, int64_t a_leading,
                                 cudaDataType, void* values, cudaDataType, void*, int64_t, cudaDataType, void* vectors,
                                 int64_t v_leading, cudaDataType, void* device, size_t device_bytes, void* host,
                                 size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    using R = Real<T>;
    return queued(handle, device, device_bytes, [=] {
      const int n = static_cast<int>(size), leading = static_cast<int>(a_leading),
                vector_leading = static_cast<int>(v_leading), one = 1;
      const char* job = right == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N";
      std::vector<R> reals(static_cast<size_t>(2 * n)), imaginary(static_cast<size_t>(n));
      with_work<T>([&](T* work, int* wanted) {
        if constexpr (is_complex<T>)
          Lapack<T>::geev("N", job, &n, static_cast<T*>(a), &leading, static_cast<T*>(values), nullptr, &one,
                          static_cast<T*>(vectors), &vector_leading, work, wanted, reals.data(), info);
        else
          Lapack<T>::geev("N", job, &n, static_cast<T*>(a), &leading, reals.data(), imaginary.data(), nullptr, &one,
                          static_cast<T*>(vectors), &vector_leading, work, wanted, info);
      });
      if constexpr (!is_complex<T>)
        for (int i = 0; i < n; ++i)
          static_cast<std::complex<R>*>(values)[i] = {reals[static_cast<size_t>(i)], imaginary[static_cast<size_t>(i)]};
    });
  });
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, signed char, signed char,
                                             int64_t m, int64_t n, cudaDataType type, const void*, int64_t leading,
                                             cudaDataType values, const void*, cudaDataType, const void*,
                                             int64_t u_leading, cudaDataType, const void*, int64_t v_leading,
                                             cudaDataType compute, size_t* on_device, size_t* on_host) {
  return sizes(m >= n && type == compute && values == real_type(type) && leading >= std::max<int64_t>(1, m) &&
                   u_leading >= std::max<int64_t>(1, m) && v_leading >= std::max<int64_t>(1, n),
               on_device, on_host);
}
cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t, signed char job_u, signed char job_v,
                                  int64_t m, int64_t n, cudaDataType type, void* a, int64_t leading, cudaDataType,
                                  void* values, cudaDataType, void* u, int64_t u_leading, cudaDataType, void* v,
                                  int64_t v_leading, cudaDataType, void* device, size_t device_bytes, void* host,
                                  size_t host_bytes, int* info) {
  if (!has_work(device, device_bytes, host, host_bytes)) return CUSOLVER_STATUS_INVALID_WORKSPACE;
  return for_type(type, [&]<typename T>() {
    return queued(handle, device, device_bytes, [=] {
      const char for_u[] = {static_cast<char>(job_u), 0}, for_v[] = {static_cast<char>(job_v), 0};
      singular_values(for_u, for_v, static_cast<int>(m), static_cast<int>(n), static_cast<T*>(a),
                      static_cast<int>(leading), static_cast<Real<T>*>(values), static_cast<T*>(u),
                      static_cast<int>(u_leading), static_cast<T*>(v), static_cast<int>(v_leading), info);
    });
  });
}

// ---- one function per type; only the names differ

#define FOR_EACH_TYPE(define)                                                               \
  define(S, or, float, float) define(D, or, double, double) define(C, un, cuComplex, float) \
      define(Z, un, cuDoubleComplex, double)
#define DEFINE(letter, orthogonal, type, real)                                                                         \
  cusolverStatus_t cusolverDn##letter##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t part, int n,           \
                                                    type* a[], int leading, int* info, int batches) {                  \
    return potrf_batched(handle, part, n, a, leading, info, batches);                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##orthogonal##gqr_bufferSize(                                                     \
      cusolverDnHandle_t, int m, int n, int k, const type*, int leading, const type*, int* wanted) {                   \
    return size(m >= n && n >= k && leading >= std::max(1, m), wanted);                                                \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##orthogonal##gqr(cusolverDnHandle_t handle, int m, int n, int k, type* a,        \
                                                       int leading, const type* scales, type* work, int space,         \
                                                       int* info) {                                                    \
    return orgqr(handle, m, n, k, a, leading, scales, work, space, info);                                              \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##sytrf_bufferSize(cusolverDnHandle_t, int n, type*, int leading, int* wanted) {  \
    return size(leading >= std::max(1, n), wanted);                                                                    \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##sytrf(cusolverDnHandle_t handle, cublasFillMode_t part, int n, type* a,         \
                                             int leading, int* pivots, type* work, int space, int* info) {             \
    return sytrf(handle, part, n, a, leading, pivots, work, space, info);                                              \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##gesvdj_bufferSize(                                                              \
      cusolverDnHandle_t, cusolverEigMode_t, int, int m, int n, const type*, int leading, const real*, const type*,    \
      int u_leading, const type*, int v_leading, int* wanted, gesvdjInfo_t) {                                          \
    return size(leading >= std::max(1, m) && u_leading >= std::max(1, m) && v_leading >= std::max(1, n), wanted);      \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##gesvdj(                                                                         \
      cusolverDnHandle_t handle, cusolverEigMode_t mode, int economical, int m, int n, type* a, int leading,           \
      real* values, type* u, int u_leading, type* v, int v_leading, type* work, int space, int* info, gesvdjInfo_t) {  \
    return gesvdj(handle, mode, economical, m, n, a, leading, values, u, u_leading, v, v_leading, work, space, info,   \
                  1);                                                                                                  \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##gesvdjBatched_bufferSize(                                                       \
      cusolverDnHandle_t, cusolverEigMode_t, int m, int n, const type*, int leading, const real*, const type*,         \
      int u_leading, const type*, int v_leading, int* wanted, gesvdjInfo_t, int) {                                     \
    return size(                                                                                                       \
        m <= 32 && n <= 32 && leading >= std::max(1, m) && u_leading >= std::max(1, m) && v_leading >= std::max(1, n), \
        wanted);                                                                                                       \
  }                                                                                                                    \
  cusolverStatus_t cusolverDn##letter##gesvdjBatched(                                                                  \
      cusolverDnHandle_t handle, cusolverEigMode_t mode, int m, int n, type* a, int leading, real* values, type* u,    \
      int u_leading, type* v, int v_leading, type* work, int space, int* info, gesvdjInfo_t, int batches) {            \
    return gesvdj(handle, mode, 0, m, n, a, leading, values, u, u_leading, v, v_leading, work, space, info, batches);  \
  }
FOR_EACH_TYPE(DEFINE)

}  // extern "C"
