#include "vendor/cusolver/cusolver.hpp"

#include <cusolverDn.h>

#include <vector>

#include "drivers/matrices/matrix_kernels.hpp"
#include "runtime/error.hpp"
#include "vendor/handle_pool.hpp"
#include "vendor/sdcz.hpp"

namespace candelabra::cuda {
namespace {

struct CuSolver {
  Library library{"cuSOLVER", "libcusolver.so.12", "nvidia-cusolver"};
  Function<decltype(cusolverDnCreate)> create{library, "cusolverDnCreate"};
  Function<decltype(cusolverDnSetStream)> set_stream{library, "cusolverDnSetStream"};
  Function<decltype(cusolverDnCreateParams)> create_parameters{library, "cusolverDnCreateParams"};
  Function<decltype(cusolverDnCreateGesvdjInfo)> create_jacobi{library, "cusolverDnCreateGesvdjInfo"};

  Function<decltype(cusolverDnXpotrf_bufferSize)> potrf_size{library, "cusolverDnXpotrf_bufferSize"};
  Function<decltype(cusolverDnXpotrf)> potrf{library, "cusolverDnXpotrf"};
  FourTypes<decltype(cusolverDnSpotrfBatched), decltype(cusolverDnDpotrfBatched), decltype(cusolverDnCpotrfBatched),
            decltype(cusolverDnZpotrfBatched)>
      potrf_batched{{library, "cusolverDnSpotrfBatched"},
                    {library, "cusolverDnDpotrfBatched"},
                    {library, "cusolverDnCpotrfBatched"},
                    {library, "cusolverDnZpotrfBatched"}};
  Function<decltype(cusolverDnXgetrf_bufferSize)> getrf_size{library, "cusolverDnXgetrf_bufferSize"};
  Function<decltype(cusolverDnXgetrf)> getrf{library, "cusolverDnXgetrf"};
  Function<decltype(cusolverDnXgetrs)> getrs{library, "cusolverDnXgetrs"};
  Function<decltype(cusolverDnXgeqrf_bufferSize)> geqrf_size{library, "cusolverDnXgeqrf_bufferSize"};
  Function<decltype(cusolverDnXgeqrf)> geqrf{library, "cusolverDnXgeqrf"};
  FourTypes<decltype(cusolverDnSorgqr_bufferSize), decltype(cusolverDnDorgqr_bufferSize),
            decltype(cusolverDnCungqr_bufferSize), decltype(cusolverDnZungqr_bufferSize)>
      orgqr_size{{library, "cusolverDnSorgqr_bufferSize"},
                 {library, "cusolverDnDorgqr_bufferSize"},
                 {library, "cusolverDnCungqr_bufferSize"},
                 {library, "cusolverDnZungqr_bufferSize"}};
  FourTypes<decltype(cusolverDnSorgqr), decltype(cusolverDnDorgqr), decltype(cusolverDnCungqr),
            decltype(cusolverDnZungqr)>
      orgqr{{library, "cusolverDnSorgqr"},
            {library, "cusolverDnDorgqr"},
            {library, "cusolverDnCungqr"},
            {library, "cusolverDnZungqr"}};
  FourTypes<decltype(cusolverDnSsytrf_bufferSize), decltype(cusolverDnDsytrf_bufferSize),
            decltype(cusolverDnCsytrf_bufferSize), decltype(cusolverDnZsytrf_bufferSize)>
      sytrf_size{{library, "cusolverDnSsytrf_bufferSize"},
                 {library, "cusolverDnDsytrf_bufferSize"},
                 {library, "cusolverDnCsytrf_bufferSize"},
                 {library, "cusolverDnZsytrf_bufferSize"}};
  FourTypes<decltype(cusolverDnSsytrf), decltype(cusolverDnDsytrf), decltype(cusolverDnCsytrf),
            decltype(cusolverDnZsytrf)>
      sytrf{{library, "cusolverDnSsytrf"},
            {library, "cusolverDnDsytrf"},
            {library, "cusolverDnCsytrf"},
            {library, "cusolverDnZsytrf"}};

  Function<decltype(cusolverDnXsyevd_bufferSize)> syevd_size{library, "cusolverDnXsyevd_bufferSize"};
  Function<decltype(cusolverDnXsyevd)> syevd{library, "cusolverDnXsyevd"};
  Function<decltype(cusolverDnXsyevBatched_bufferSize)> syev_batched_size{library, "cusolverDnXsyevBatched_bufferSize"};
  Function<decltype(cusolverDnXsyevBatched)> syev_batched{library, "cusolverDnXsyevBatched"};
  Function<decltype(cusolverDnXgeev_bufferSize)> geev_size{library, "cusolverDnXgeev_bufferSize"};
  Function<decltype(cusolverDnXgeev)> geev{library, "cusolverDnXgeev"};
  Function<decltype(cusolverDnXgesvd_bufferSize)> gesvd_size{library, "cusolverDnXgesvd_bufferSize"};
  Function<decltype(cusolverDnXgesvd)> gesvd{library, "cusolverDnXgesvd"};
  FourTypes<decltype(cusolverDnSgesvdj_bufferSize), decltype(cusolverDnDgesvdj_bufferSize),
            decltype(cusolverDnCgesvdj_bufferSize), decltype(cusolverDnZgesvdj_bufferSize)>
      gesvdj_size{{library, "cusolverDnSgesvdj_bufferSize"},
                  {library, "cusolverDnDgesvdj_bufferSize"},
                  {library, "cusolverDnCgesvdj_bufferSize"},
                  {library, "cusolverDnZgesvdj_bufferSize"}};
  FourTypes<decltype(cusolverDnSgesvdj), decltype(cusolverDnDgesvdj), decltype(cusolverDnCgesvdj),
            decltype(cusolverDnZgesvdj)>
      gesvdj{{library, "cusolverDnSgesvdj"},
             {library, "cusolverDnDgesvdj"},
             {library, "cusolverDnCgesvdj"},
             {library, "cusolverDnZgesvdj"}};
  FourTypes<decltype(cusolverDnSgesvdjBatched_bufferSize), decltype(cusolverDnDgesvdjBatched_bufferSize),
            decltype(cusolverDnCgesvdjBatched_bufferSize), decltype(cusolverDnZgesvdjBatched_bufferSize)>
      gesvdj_batched_size{{library, "cusolverDnSgesvdjBatched_bufferSize"},
                          {library, "cusolverDnDgesvdjBatched_bufferSize"},
                          {library, "cusolverDnCgesvdjBatched_bufferSize"},
                          {library, "cusolverDnZgesvdjBatched_bufferSize"}};
  FourTypes<decltype(cusolverDnSgesvdjBatched), decltype(cusolverDnDgesvdjBatched), decltype(cusolverDnCgesvdjBatched),
            decltype(cusolverDnZgesvdjBatched)>
      gesvdj_batched{{library, "cusolverDnSgesvdjBatched"},
                     {library, "cusolverDnDgesvdjBatched"},
                     {library, "cusolverDnCgesvdjBatched"},
                     {library, "cusolverDnZgesvdjBatched"}};
};
const CuSolver& cusolver() {
  static const CuSolver table;
  return table;
}

const char* text_of(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_NOT_SUPPORTED";
    case CUSOLVER_STATUS_INVALID_WORKSPACE:
      return "CUSOLVER_STATUS_INVALID_WORKSPACE";
    default:
      return nullptr;
  }
}

void check(cusolverStatus_t status, const char* function) {
  if (status != CUSOLVER_STATUS_SUCCESS) [[unlikely]]
    raise_library("cuSOLVER", function, static_cast<int>(status), text_of(status));
}

struct Handles {
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t parameters = nullptr;  // default parameters
  gesvdjInfo_t jacobi = nullptr;            // defaults: the library's number of sweeps, values in descending order
};

// A handle for a call, on its stream.
class Lease {
 public:
  explicit Lease(const Call& call) : device_(call.device()) {
    handles_ = lasting_pool<Handles>().take(device_, [] {
      Handles made;
      check(cusolver().create(&made.handle), "cusolverDnCreate");
      check(cusolver().create_parameters(&made.parameters), "cusolverDnCreateParams");
      check(cusolver().create_jacobi(&made.jacobi), "cusolverDnCreateGesvdjInfo");
      return made;
    });
    const cusolverStatus_t status = cusolver().set_stream(handles_.handle, call.stream());
    if (status != CUSOLVER_STATUS_SUCCESS) {
      lasting_pool<Handles>().give(device_, handles_);
      check(status, "cusolverDnSetStream");
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { lasting_pool<Handles>().give(device_, handles_); }
  operator cusolverDnHandle_t() const { return handles_.handle; }
  cusolverDnParams_t parameters() const { return handles_.parameters; }
  gesvdjInfo_t jacobi() const { return handles_.jacobi; }

 private:
  int device_;
  Handles handles_;
};

cudaDataType_t type_of(int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT32:
      return CUDA_R_32F;
    case CB_FLOAT64:
      return CUDA_R_64F;
    case CB_COMPLEX64:
      return CUDA_C_32F;
    case CB_COMPLEX128:
      return CUDA_C_64F;
    default:
      throw not_implemented();
  }
}
cudaDataType_t real_type_of(int32_t dtype) {
  return dtype == CB_FLOAT32 || dtype == CB_COMPLEX64 ? CUDA_R_32F : CUDA_R_64F;
}
cudaDataType_t complex_type_of(int32_t dtype) {
  return dtype == CB_FLOAT32 || dtype == CB_COMPLEX64 ? CUDA_C_32F : CUDA_C_64F;
}
int64_t real_size_of(int32_t dtype) {
  return dtype == CB_FLOAT32 || dtype == CB_COMPLEX64 ? 4 : 8;
}

cublasFillMode_t part(bool upper) {
  return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

// Workspaces of the routines with 64-bit sizes, on the device and on the host.
struct Work {
  size_t device_bytes = 0, host_bytes = 0;
  Workspace device;
  std::vector<std::byte> host;

  void make(const Call& call) {
    device = Workspace(call, device_bytes);
    host.resize(host_bytes);
  }
};
// A workspace of the other routines, in elements of the matrices' type.
Workspace work_elements(const Call& call, int count, int32_t dtype) {
  return {call, static_cast<size_t>(std::max(1, count)) * static_cast<size_t>(itemsize(dtype))};
}

void* offset(void* data, int64_t elements, int64_t size) {
  return static_cast<std::byte*>(data) + elements * size;
}

}  // namespace

void factor_cholesky(const Call& call, const Matrices& a, bool upper, int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  if (a.batches > 1) {
    const Workspace matrices = addresses(call, a);
    check(solver.potrf_batched(a.dtype, handle, part(upper), int32_size(a.rows), at(matrices.data()),
                               int32_size(a.leading()), info, int32_size(a.batches)),
          "cusolverDn<t>potrfBatched");
    return;
  }
  const cudaDataType_t type = type_of(a.dtype);
  Work work;
  check(solver.potrf_size(handle, handle.parameters(), part(upper), a.rows, type, a.data, a.leading(), type,
                          &work.device_bytes, &work.host_bytes),
        "cusolverDnXpotrf_bufferSize");
  work.make(call);
  check(solver.potrf(handle, handle.parameters(), part(upper), a.rows, type, a.data, a.leading(), type,
                     work.device.data(), work.device_bytes, work.host.data(), work.host_bytes, info),
        "cusolverDnXpotrf");
}

void factor_lu(const Call& call, const Matrices& a, int64_t* pivots, int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(a.dtype);
  const int64_t count = std::min(a.rows, a.columns);
  Work work;
  check(solver.getrf_size(handle, handle.parameters(), a.rows, a.columns, type, a.data, a.leading(), type,
                          &work.device_bytes, &work.host_bytes),
        "cusolverDnXgetrf_bufferSize");
  work.make(call);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.getrf(handle, handle.parameters(), a.rows, a.columns, type, a.matrix(b), a.leading(),
                       pivots ? pivots + b * count : nullptr, type, work.device.data(), work.device_bytes,
                       work.host.data(), work.host_bytes, info + b),
          "cusolverDnXgetrf");
}

void solve_lu(const Call& call, const Matrices& lu, const int64_t* pivots, const Matrices& x, bool adjoint) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(lu.dtype);
  const Workspace info(call, sizeof(int));
  for (int64_t b = 0; b < lu.batches; ++b)
    check(
        solver.getrs(handle, handle.parameters(), adjoint ? CUBLAS_OP_C : CUBLAS_OP_N, lu.rows, x.columns, type,
                     lu.matrix(b), lu.leading(), pivots + b * lu.rows, type, x.matrix(b), x.leading(), info.as<int>()),
        "cusolverDnXgetrs");
}

void factor_qr(const Call& call, const Matrices& a, void* scales) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(a.dtype);
  const Workspace info(call, sizeof(int));
  Work work;
  check(solver.geqrf_size(handle, handle.parameters(), a.rows, a.columns, type, a.data, a.leading(), type, scales, type,
                          &work.device_bytes, &work.host_bytes),
        "cusolverDnXgeqrf_bufferSize");
  work.make(call);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.geqrf(handle, handle.parameters(), a.rows, a.columns, type, a.matrix(b), a.leading(), type,
                       offset(scales, b * std::min(a.rows, a.columns), itemsize(a.dtype)), type, work.device.data(),
                       work.device_bytes, work.host.data(), work.host_bytes, info.as<int>()),
          "cusolverDnXgeqrf");
}

void form_q(const Call& call, const Matrices& q, int64_t count, const void* scales, int64_t scale_step) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const int rows = int32_size(q.rows), columns = int32_size(q.columns), leading = int32_size(q.leading());
  const auto used = static_cast<int>(count);
  int size = 0;
  check(solver.orgqr_size(q.dtype, handle, rows, columns, used, at(q.data), leading, at(scales), &size),
        "cusolverDn<t>orgqr_bufferSize");
  const Workspace work = work_elements(call, size, q.dtype), info(call, sizeof(int));
  for (int64_t b = 0; b < q.batches; ++b)
    check(solver.orgqr(q.dtype, handle, rows, columns, used, at(q.matrix(b)), leading,
                       at(offset(const_cast<void*>(scales), b * scale_step, itemsize(q.dtype))), at(work.data()), size,
                       info.as<int>()),
          "cusolverDn<t>orgqr");
}

void factor_symmetric(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const int n = int32_size(a.rows), leading = int32_size(a.leading());
  int size = 0;
  check(solver.sytrf_size(a.dtype, handle, n, at(a.data), leading, &size), "cusolverDn<t>sytrf_bufferSize");
  const Workspace work = work_elements(call, size, a.dtype);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.sytrf(a.dtype, handle, CUBLAS_FILL_MODE_LOWER, n, at(a.matrix(b)), leading, pivots + b * a.rows,
                       at(work.data()), size, info + b),
          "cusolverDn<t>sytrf");
}

void eigenvalues_symmetric(const Call& call, const Matrices& a, bool upper, bool vectors, void* values, int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(a.dtype), real = real_type_of(a.dtype);
  const cusolverEigMode_t mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  Work work;
  if (a.batches > 1 && a.rows <= 512) {
    check(solver.syev_batched_size(handle, handle.parameters(), mode, part(upper), a.rows, type, a.data, a.leading(),
                                   real, values, type, &work.device_bytes, &work.host_bytes, a.batches),
          "cusolverDnXsyevBatched_bufferSize");
    work.make(call);
    check(solver.syev_batched(handle, handle.parameters(), mode, part(upper), a.rows, type, a.data, a.leading(), real,
                              values, type, work.device.data(), work.device_bytes, work.host.data(), work.host_bytes,
                              info, a.batches),
          "cusolverDnXsyevBatched");
    return;
  }
  check(solver.syevd_size(handle, handle.parameters(), mode, part(upper), a.rows, type, a.data, a.leading(), real,
                          values, type, &work.device_bytes, &work.host_bytes),
        "cusolverDnXsyevd_bufferSize");
  work.make(call);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.syevd(handle, handle.parameters(), mode, part(upper), a.rows, type, a.matrix(b), a.leading(), real,
                       offset(values, b * a.rows, real_size_of(a.dtype)), type, work.device.data(), work.device_bytes,
                       work.host.data(), work.host_bytes, info + b),
          "cusolverDnXsyevd");
}

void eigenvalues_general(const Call& call, const Matrices& a, void* values, const Matrices* vectors, int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(a.dtype), complex = complex_type_of(a.dtype);
  const cusolverEigMode_t mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  Work work;
  check(solver.geev_size(handle, handle.parameters(), CUSOLVER_EIG_MODE_NOVECTOR, mode, a.rows, type, a.data,
                         a.leading(), complex, values, type, nullptr, a.leading(), type,
                         vectors ? vectors->data : nullptr, a.leading(), type, &work.device_bytes, &work.host_bytes),
        "cusolverDnXgeev_bufferSize");
  work.make(call);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.geev(handle, handle.parameters(), CUSOLVER_EIG_MODE_NOVECTOR, mode, a.rows, type, a.matrix(b),
                      a.leading(), complex, offset(values, b * a.rows, 2 * real_size_of(a.dtype)), type, nullptr,
                      a.leading(), type, vectors ? vectors->matrix(b) : nullptr, a.leading(), type, work.device.data(),
                      work.device_bytes, work.host.data(), work.host_bytes, info + b),
          "cusolverDnXgeev");
}

void singular_values_jacobi(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v,
                            int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cusolverEigMode_t mode = u ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const int rows = int32_size(a.rows), columns = int32_size(a.columns), leading = int32_size(a.leading());
  // Without vectors, addresses and leading dimensions must still be valid.
  const int u_leading = rows, v_leading = columns;
  const Workspace nothing = u ? Workspace() : work_elements(call, 1, a.dtype);
  void *const u_data = u ? u->data : nothing.data(), *const v_data = v ? v->data : nothing.data();
  int size = 0;
  // The batched routine only computes full matrices of vectors, of up to 32 rows.
  if (a.batches > 1 && rows <= 32 && columns <= 32 && (!u || u->columns == a.rows)) {
    check(solver.gesvdj_batched_size(a.dtype, handle, mode, rows, columns, at(a.data), leading, at(values), at(u_data),
                                     u_leading, at(v_data), v_leading, &size, handle.jacobi(), int32_size(a.batches)),
          "cusolverDn<t>gesvdjBatched_bufferSize");
    const Workspace work = work_elements(call, size, a.dtype);
    check(solver.gesvdj_batched(a.dtype, handle, mode, rows, columns, at(a.data), leading, at(values), at(u_data),
                                u_leading, at(v_data), v_leading, at(work.data()), size, info, handle.jacobi(),
                                int32_size(a.batches)),
          "cusolverDn<t>gesvdjBatched");
    return;
  }
  const int economical = u && u->columns == a.rows ? 0 : 1;
  check(solver.gesvdj_size(a.dtype, handle, mode, economical, rows, columns, at(a.data), leading, at(values),
                           at(u_data), u_leading, at(v_data), v_leading, &size, handle.jacobi()),
        "cusolverDn<t>gesvdj_bufferSize");
  const Workspace work = work_elements(call, size, a.dtype);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.gesvdj(a.dtype, handle, mode, economical, rows, columns, at(a.matrix(b)), leading,
                        at(offset(values, b * a.columns, real_size_of(a.dtype))), at(u ? u->matrix(b) : u_data),
                        u_leading, at(v ? v->matrix(b) : v_data), v_leading, at(work.data()), size, info + b,
                        handle.jacobi()),
          "cusolverDn<t>gesvdj");
}

void singular_values_qr(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v_adjoint,
                        int32_t* info) {
  const CuSolver& solver = cusolver();
  const Lease handle(call);
  const cudaDataType_t type = type_of(a.dtype), real = real_type_of(a.dtype);
  const auto job_u = static_cast<signed char>(!u ? 'N' : u->columns == a.rows ? 'A' : 'S');
  const auto job_v = static_cast<signed char>(!u ? 'N' : u->columns == a.rows ? 'A' : 'S');
  Work work;
  check(solver.gesvd_size(handle, handle.parameters(), job_u, job_v, a.rows, a.columns, type, a.data, a.leading(), real,
                          values, type, u ? u->data : nullptr, a.rows, type, v_adjoint ? v_adjoint->data : nullptr,
                          a.columns, type, &work.device_bytes, &work.host_bytes),
        "cusolverDnXgesvd_bufferSize");
  work.make(call);
  for (int64_t b = 0; b < a.batches; ++b)
    check(solver.gesvd(handle, handle.parameters(), job_u, job_v, a.rows, a.columns, type, a.matrix(b), a.leading(),
                       real, offset(values, b * a.columns, real_size_of(a.dtype)), type, u ? u->matrix(b) : nullptr,
                       a.rows, type, v_adjoint ? v_adjoint->matrix(b) : nullptr, a.columns, type, work.device.data(),
                       work.device_bytes, work.host.data(), work.host_bytes, info + b),
          "cusolverDnXgesvd");
}

}  // namespace candelabra::cuda
