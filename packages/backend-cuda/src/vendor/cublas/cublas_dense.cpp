#include "vendor/cublas/cublas_dense.hpp"

#include <cublas_v2.h>

#include "drivers/matrices/matrix_kernels.hpp"
#include "runtime/error.hpp"
#include "vendor/handle_pool.hpp"
#include "vendor/sdcz.hpp"

namespace candelabra::cuda {
namespace {

struct Cublas {
  Library library{"cuBLAS", "libcublas.so.13", "nvidia-cublas"};
  Function<decltype(cublasCreate_v2)> create{library, "cublasCreate_v2"};
  Function<decltype(cublasSetStream_v2)> set_stream{library, "cublasSetStream_v2"};
  Function<decltype(cublasSetWorkspace_v2)> set_workspace{library, "cublasSetWorkspace_v2"};
  Function<decltype(cublasGetStatusString)> status_string{library, "cublasGetStatusString"};
  FourTypes<decltype(cublasStrsm_v2_64), decltype(cublasDtrsm_v2_64), decltype(cublasCtrsm_v2_64),
            decltype(cublasZtrsm_v2_64)>
      trsm{{library, "cublasStrsm_v2_64"},
           {library, "cublasDtrsm_v2_64"},
           {library, "cublasCtrsm_v2_64"},
           {library, "cublasZtrsm_v2_64"}};
  FourTypes<decltype(cublasStrsmBatched), decltype(cublasDtrsmBatched), decltype(cublasCtrsmBatched),
            decltype(cublasZtrsmBatched)>
      trsm_batched{{library, "cublasStrsmBatched"},
                   {library, "cublasDtrsmBatched"},
                   {library, "cublasCtrsmBatched"},
                   {library, "cublasZtrsmBatched"}};
  FourTypes<decltype(cublasSgetrfBatched), decltype(cublasDgetrfBatched), decltype(cublasCgetrfBatched),
            decltype(cublasZgetrfBatched)>
      getrf{{library, "cublasSgetrfBatched"},
            {library, "cublasDgetrfBatched"},
            {library, "cublasCgetrfBatched"},
            {library, "cublasZgetrfBatched"}};
  FourTypes<decltype(cublasSgetriBatched), decltype(cublasDgetriBatched), decltype(cublasCgetriBatched),
            decltype(cublasZgetriBatched)>
      getri{{library, "cublasSgetriBatched"},
            {library, "cublasDgetriBatched"},
            {library, "cublasCgetriBatched"},
            {library, "cublasZgetriBatched"}};
  FourTypes<decltype(cublasSgetrsBatched), decltype(cublasDgetrsBatched), decltype(cublasCgetrsBatched),
            decltype(cublasZgetrsBatched)>
      getrs{{library, "cublasSgetrsBatched"},
            {library, "cublasDgetrsBatched"},
            {library, "cublasCgetrsBatched"},
            {library, "cublasZgetrsBatched"}};
  FourTypes<decltype(cublasSgeqrfBatched), decltype(cublasDgeqrfBatched), decltype(cublasCgeqrfBatched),
            decltype(cublasZgeqrfBatched)>
      geqrf{{library, "cublasSgeqrfBatched"},
            {library, "cublasDgeqrfBatched"},
            {library, "cublasCgeqrfBatched"},
            {library, "cublasZgeqrfBatched"}};
};
const Cublas& cublas() {
  static const Cublas table;
  return table;
}

void check(cublasStatus_t status, const char* function) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    raise_library("cuBLAS", function, static_cast<int>(status), cublas().status_string(status));
}
// Checks the host-side info of a batched routine.
void check_arguments(int info, const char* function) {
  if (info != 0) [[unlikely]]
    throw failure(CB_RUNTIME_ERROR, "cuBLAS: %s found argument %d wrong", function, -info);
}

// A handle for one call: on its stream, with a workspace of its own.
class Lease {
 public:
  explicit Lease(const Call& call) : device_(call.device()), workspace_(call, workspace_bytes(device_)) {
    handle_ = lasting_pool<cublasHandle_t>().take(device_, [] {
      cublasHandle_t made = nullptr;
      check(cublas().create(&made), "cublasCreate");
      return made;
    });
    // Setting the stream resets the workspace, so the workspace is set second.
    cublasStatus_t status = cublas().set_stream(handle_, call.stream());
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublas().set_workspace(handle_, workspace_.data(), workspace_.bytes());
    if (status != CUBLAS_STATUS_SUCCESS) {
      give_back();
      check(status, "cublasSetWorkspace");
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { give_back(); }
  operator cublasHandle_t() const { return handle_; }

 private:
  // NVIDIA's recommendation.
  static size_t workspace_bytes(int device) {
    return device_traits(device).capability >= 90 ? size_t{32} << 20 : size_t{4} << 20;
  }
  void give_back() { lasting_pool<cublasHandle_t>().give(device_, handle_); }

  int device_;
  Workspace workspace_;
  cublasHandle_t handle_ = nullptr;
};

// 1 in the type of the matrices, in host memory.
struct One {
  double full[2] = {1, 0};
  float single[2] = {1, 0};
  Address of(int32_t dtype) const {
    return at(dtype == CB_FLOAT64 || dtype == CB_COMPLEX128 ? static_cast<const void*>(full) : single);
  }
};

std::byte* matrix(const Strided& m, int64_t index, int32_t dtype) {
  return static_cast<std::byte*>(m.data) + index * m.step * itemsize(dtype);
}

}  // namespace

void solve_triangular(const Call& call, const TriangularSystem& s) {
  if (s.rows == 0 || s.columns == 0 || s.batches == 0) return;
  const Cublas& blas = cublas();
  const Lease handle(call);
  const One one;
  const cublasSideMode_t side = s.left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const cublasFillMode_t part = s.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cublasOperation_t operation = s.adjoint ? CUBLAS_OP_C : s.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasDiagType_t diagonal = s.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  // The batched routine is made for small matrices; a few large ones are faster one by one.
  const int64_t size = s.left ? s.rows : s.columns;
  if (s.batches > 1 && (size <= 512 || s.batches >= 64)) {
    const Workspace a = addresses(call, s.a.data, s.a.step * itemsize(s.dtype), s.batches),
                    x = addresses(call, s.x.data, s.x.step * itemsize(s.dtype), s.batches);
    check(blas.trsm_batched(s.dtype, handle, side, part, operation, diagonal, int32_size(s.rows), int32_size(s.columns),
                            one.of(s.dtype), at(a.data()), int32_size(s.a.leading), at(x.data()),
                            int32_size(s.x.leading), int32_size(s.batches)),
          "cublas<t>trsmBatched");
    return;
  }
  for (int64_t b = 0; b < s.batches; ++b)
    check(blas.trsm(s.dtype, handle, side, part, operation, diagonal, s.rows, s.columns, one.of(s.dtype),
                    at(matrix(s.a, b, s.dtype)), s.a.leading, at(matrix(s.x, b, s.dtype)), s.x.leading),
          "cublas<t>trsm");
}

bool suits_batched(int64_t batches, int64_t size) {
  return batches > 1 && (size <= 128 || (size <= 512 && batches >= 16));
}

void factor_lu_batched(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info) {
  const Lease handle(call);
  const Workspace matrices = addresses(call, a);
  check(cublas().getrf(a.dtype, handle, int32_size(a.rows), at(matrices.data()), int32_size(a.leading()), pivots, info,
                       int32_size(a.batches)),
        "cublas<t>getrfBatched");
}

void invert_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& inverse,
                       int32_t* info) {
  const Lease handle(call);
  const Workspace factors = addresses(call, lu), results = addresses(call, inverse);
  check(cublas().getri(lu.dtype, handle, int32_size(lu.rows), at(factors.data()), int32_size(lu.leading()), pivots,
                       at(results.data()), int32_size(inverse.leading()), info, int32_size(lu.batches)),
        "cublas<t>getriBatched");
}

void solve_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& x, bool adjoint) {
  const Lease handle(call);
  const Workspace factors = addresses(call, lu), right = addresses(call, x);
  int info = 0;
  check(cublas().getrs(lu.dtype, handle, adjoint ? CUBLAS_OP_C : CUBLAS_OP_N, int32_size(lu.rows),
                       int32_size(x.columns), at(factors.data()), int32_size(lu.leading()), pivots, at(right.data()),
                       int32_size(x.leading()), &info, int32_size(lu.batches)),
        "cublas<t>getrsBatched");
  check_arguments(info, "cublas<t>getrsBatched");
}

void factor_qr_batched(const Call& call, const Matrices& a, void* scales) {
  const Lease handle(call);
  const Workspace matrices = addresses(call, a),
                  taus = addresses(call, scales, std::min(a.rows, a.columns) * itemsize(a.dtype), a.batches);
  int info = 0;
  check(cublas().geqrf(a.dtype, handle, int32_size(a.rows), int32_size(a.columns), at(matrices.data()),
                       int32_size(a.leading()), at(taus.data()), &info, int32_size(a.batches)),
        "cublas<t>geqrfBatched");
  check_arguments(info, "cublas<t>geqrfBatched");
}

}  // namespace candelabra::cuda
