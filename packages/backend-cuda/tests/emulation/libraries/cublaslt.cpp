// The functions of cuBLASLt that the backend calls, as three nested loops. Matrices are
// column-major.
#include <cublasLt.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "emulation.hpp"
#include "halves.hpp"

struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transposed[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;
};
struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batches = 1;
  int64_t step = 0;
};
struct Preference {
  uint64_t workspace = 0;
};

namespace {

template <typename T>
T& of(void* opaque) {
  return **static_cast<T**>(opaque);
}
template <typename T>
const T& of(const void* opaque) {
  return **static_cast<T* const*>(opaque);
}
template <typename Opaque, typename T>
Opaque* made(T* inner) {
  auto* opaque = new Opaque();
  static_assert(sizeof *opaque >= sizeof inner);
  std::memcpy(opaque, &inner, sizeof inner);
  return opaque;
}

template <typename T>
bool is_complex(T) {
  return false;
}
template <typename T>
bool is_complex(std::complex<T>) {
  return true;
}

bool has_bias(const Desc& desc) {
  return desc.epilogue == CUBLASLT_EPILOGUE_BIAS || desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
         desc.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}
// Checks the epilogue: only for real matrices up to single precision. GELU is the tanh
// approximation.
bool can_end(const Desc& desc, cudaDataType_t type) {
  switch (desc.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return true;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_GELU:
      return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F;
    default:
      return has_bias(desc) && (type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F);
  }
}
double ended(const Desc& desc, double x) {
  switch (desc.epilogue) {
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return x < 0 ? 0 : x;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

// Accumulates products in C; elements in memory are T.
template <typename T, typename C, typename Sum = C>
void multiply(const Desc& desc, Sum alpha, const T* a, const Layout& a_layout, const T* b, const Layout& b_layout,
              Sum beta, const T* c, const Layout& c_layout, T* d, const Layout& d_layout) {
  const auto rows = static_cast<int64_t>(d_layout.rows), columns = static_cast<int64_t>(d_layout.columns);
  const bool a_turned = desc.transposed[0] != CUBLAS_OP_N, b_turned = desc.transposed[1] != CUBLAS_OP_N;
  const auto inner = static_cast<int64_t>(a_turned ? a_layout.rows : a_layout.columns);
  const auto conjugated = [](Sum value, int32_t operation) {
    if constexpr (requires { value.imag(); })
      return operation == CUBLAS_OP_C ? std::conj(value) : value;
    else
      return value;
  };
  std::vector<Sum> line(static_cast<size_t>(inner));
  for (int32_t batch = 0; batch < d_layout.batches; ++batch) {
    const T *left = a + batch * a_layout.step, *right = b + batch * b_layout.step;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < inner; ++k)
        line[static_cast<size_t>(k)] = conjugated(
            Sum(C(left[a_turned ? k + i * a_layout.leading : i + k * a_layout.leading])), desc.transposed[0]);
      for (int64_t j = 0; j < columns; ++j) {
        Sum sum{};
        for (int64_t k = 0; k < inner; ++k)
          sum += line[static_cast<size_t>(k)] *
                 conjugated(Sum(C(right[b_turned ? j + k * b_layout.leading : k + j * b_layout.leading])),
                            desc.transposed[1]);
        Sum value = alpha * sum;
        if (beta != Sum{}) value += beta * Sum(C(c[batch * c_layout.step + i + j * c_layout.leading]));
        if (desc.bias) value += Sum(C(static_cast<const T*>(desc.bias)[i]));
        if constexpr (std::is_same_v<Sum, double>) value = ended(desc, value);
        d[batch * d_layout.step + i + j * d_layout.leading] = T(C(value));
      }
    }
  }
}

bool covers(const Layout& layout) {
  return layout.leading >= static_cast<int64_t>(layout.rows) && layout.batches >= 1;
}

std::atomic<int> choices{0};

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE";
}
size_t cublasLtGetVersion() {
  return 130000;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* result, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *result = made<cublasLtMatmulDescOpaque_t>(new Desc{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of<Desc>(desc);
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Desc& desc = of<Desc>(opaque);
  const auto take = [&](auto& member) {
    if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(desc.transposed[0]);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(desc.transposed[1]);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(desc.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(desc.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(desc.bias_type);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* result, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *result = made<cublasLtMatrixLayoutOpaque_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of<Layout>(layout);
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  Layout& layout = of<Layout>(opaque);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof layout.batches)
    std::memcpy(&layout.batches, value, bytes);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof layout.step)
    std::memcpy(&layout.step, value, bytes);
  else
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* result) {
  *result = made<cublasLtMatmulPreferenceOpaque_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of<Preference>(preference);
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

// There is one algorithm, which needs a workspace. Like the library, it only accepts consistent
// shapes and leading dimensions. Counts the queries, so that tests can check that results are
// cached.
int emulated_choices() {
  return choices;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  ++choices;
  *count = 0;
  const Desc& desc = of<Desc>(operation);
  const Layout &left = of<Layout>(a), &right = of<Layout>(b), &from = of<Layout>(c), &to = of<Layout>(d);
  const bool a_turned = desc.transposed[0] != CUBLAS_OP_N, b_turned = desc.transposed[1] != CUBLAS_OP_N;
  if (requested < 1 || !covers(left) || !covers(right) || !covers(from) || !covers(to) ||
      (a_turned ? left.columns : left.rows) != to.rows || (b_turned ? right.rows : right.columns) != to.columns ||
      (a_turned ? left.rows : left.columns) != (b_turned ? right.columns : right.rows) || from.rows != to.rows ||
      from.columns != to.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (to.rows == 0 || to.columns == 0 || !can_end(desc, to.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].workspaceSize = 1024;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_opaque, const void* b, cublasLtMatrixLayout_t b_opaque,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_opaque, void* d,
                              cublasLtMatrixLayout_t d_opaque, const cublasLtMatmulAlgo_t*, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  Desc desc = of<Desc>(operation);
  if (!has_bias(desc)) desc.bias = nullptr;
  const Layout left = of<Layout>(a_opaque), right = of<Layout>(b_opaque), from = of<Layout>(c_opaque),
               to = of<Layout>(d_opaque);
  if (has_bias(desc) && desc.bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (left.type != to.type || right.type != to.type || from.type != to.type || workspace_bytes < 1024)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto go = [=]<typename T, typename C, typename Sum, typename Factor>(T, C, Sum, Factor) {
    Factor by, keep;
    std::memcpy(&by, alpha, sizeof by);
    std::memcpy(&keep, beta, sizeof keep);
    const cudaError_t error = emulation::queue(stream, [=] {
      std::memset(workspace, 0x55, 1024);
      multiply<T, C, Sum>(desc, Sum(by), static_cast<const T*>(a), left, static_cast<const T*>(b), right, Sum(keep),
                          static_cast<const T*>(c), from, static_cast<T*>(d), to);
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  };
  switch (to.type) {
    case CUDA_R_16F:
      return go(emulation::Half{}, float{}, double{}, float{});
    case CUDA_R_16BF:
      return go(emulation::BFloat16{}, float{}, double{}, float{});
    case CUDA_R_32F:
      return go(float{}, float{}, double{}, float{});
    case CUDA_R_64F:
      return go(double{}, double{}, double{}, double{});
    case CUDA_C_32F:
      return go(std::complex<float>{}, std::complex<float>{}, std::complex<double>{}, std::complex<float>{});
    case CUDA_C_64F:
      return go(std::complex<double>{}, std::complex<double>{}, std::complex<double>{}, std::complex<double>{});
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

}  // extern "C"
