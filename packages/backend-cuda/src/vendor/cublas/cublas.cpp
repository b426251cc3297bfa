#include "vendor/cublas/cublas.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "runtime/error.hpp"
#include "runtime/launch.hpp"
#include "runtime/settings.hpp"
#include "vendor/libraries.hpp"

namespace candelabra::cuda {
namespace {

struct CublasLt {
  Library library{"cuBLAS", "libcublasLt.so.13", "nvidia-cublas"};
  Function<decltype(cublasLtCreate)> create{library, "cublasLtCreate"};
  Function<decltype(cublasLtGetStatusString)> status_string{library, "cublasLtGetStatusString"};
  Function<decltype(cublasLtMatmul)> matmul{library, "cublasLtMatmul"};
  Function<decltype(cublasLtMatmulDescCreate)> matmul_desc_create{library, "cublasLtMatmulDescCreate"};
  Function<decltype(cublasLtMatmulDescDestroy)> matmul_desc_destroy{library, "cublasLtMatmulDescDestroy"};
  Function<decltype(cublasLtMatmulDescSetAttribute)> matmul_desc_set{library, "cublasLtMatmulDescSetAttribute"};
  Function<decltype(cublasLtMatrixLayoutCreate)> layout_create{library, "cublasLtMatrixLayoutCreate"};
  Function<decltype(cublasLtMatrixLayoutDestroy)> layout_destroy{library, "cublasLtMatrixLayoutDestroy"};
  Function<decltype(cublasLtMatrixLayoutSetAttribute)> layout_set{library, "cublasLtMatrixLayoutSetAttribute"};
  Function<decltype(cublasLtMatmulPreferenceCreate)> preference_create{library, "cublasLtMatmulPreferenceCreate"};
  Function<decltype(cublasLtMatmulPreferenceDestroy)> preference_destroy{library, "cublasLtMatmulPreferenceDestroy"};
  Function<decltype(cublasLtMatmulPreferenceSetAttribute)> preference_set{library,
                                                                          "cublasLtMatmulPreferenceSetAttribute"};
  Function<decltype(cublasLtMatmulAlgoGetHeuristic)> heuristic{library, "cublasLtMatmulAlgoGetHeuristic"};
};
const CublasLt& cublas_lt() {
  static const CublasLt table;
  return table;
}

void check(cublasStatus_t status, const char* function) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    raise_library("cuBLAS", function, static_cast<int>(status), cublas_lt().status_string(status));
}

// cuBLASLt's handle only holds properties of the device; several threads may use it at a time.
cublasLtHandle_t handle_of(int device) {
  constexpr int most = 128;
  static std::atomic<cublasLtHandle_t> handles[most];
  static std::mutex mutex;
  if (device < 0 || device >= most) throw failure(CB_RUNTIME_ERROR, "there is no device %d", device);
  std::atomic<cublasLtHandle_t>& handle = handles[device];
  if (const cublasLtHandle_t found = handle.load(std::memory_order_acquire)) return found;
  const std::lock_guard lock(mutex);
  if (const cublasLtHandle_t found = handle.load(std::memory_order_relaxed)) return found;
  cublasLtHandle_t made = nullptr;
  check(cublas_lt().create(&made), "cublasLtCreate");
  handle.store(made, std::memory_order_release);
  return made;
}

struct Precision {
  cudaDataType_t element, scale;
  cublasComputeType_t compute;
};
Precision precision_of(int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case CB_BFLOAT16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case CB_FLOAT32:
      return {CUDA_R_32F, CUDA_R_32F, settings().matmul_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case CB_FLOAT64:
      return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case CB_COMPLEX64:
      return {CUDA_C_32F, CUDA_C_32F, settings().matmul_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case CB_COMPLEX128:
      return {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
    default:
      throw not_implemented();
  }
}

// The alignment of an address, up to the 256 bytes that algorithms may require.
uint32_t alignment_of(const void* address) {
  return uint32_t{1} << std::min(8, std::countr_zero(reinterpret_cast<uintptr_t>(address) | 256));
}

// The arguments that the choice of an algorithm depends on.
struct Key {
  int64_t rows, columns, inner, batches;
  int64_t a_leading, a_step, b_leading, b_step, result_leading, result_step;
  int32_t device, element, compute;
  uint32_t a_alignment, b_alignment, result_alignment;
  int32_t a_transposed, b_transposed, epilogue, reduced;
  bool operator==(const Key&) const = default;
};
// Without padding, keys can be hashed and compared as bytes.
static_assert(std::has_unique_object_representations_v<Key>);

struct Hash {
  size_t operator()(const Key& key) const {
    uint64_t words[sizeof(Key) / sizeof(uint64_t)];
    static_assert(sizeof words == sizeof key);
    std::memcpy(words, &key, sizeof words);
    uint64_t hash = 0;
    for (const uint64_t word : words) {  // 128-bit products, whose halves are combined
      const auto product = static_cast<unsigned __int128>(hash ^ word) * 0x9e3779b97f4a7c15u;
      hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (hash << 1);
    }
    return static_cast<size_t>(hash);
  }
};

template <typename Handle>
struct Destroy {
  void operator()(Handle* handle) const {
    if constexpr (std::is_same_v<Handle, cublasLtMatmulDescOpaque_t>)
      cublas_lt().matmul_desc_destroy(handle);
    else if constexpr (std::is_same_v<Handle, cublasLtMatrixLayoutOpaque_t>)
      cublas_lt().layout_destroy(handle);
    else
      cublas_lt().preference_destroy(handle);
  }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Destroy<Handle>>;
using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

// The result of the heuristics.
struct Heuristic {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
  bool possible;
};

struct Plan {
  Owned<cublasLtMatmulDescOpaque_t> operation;
  Layout a, b, result;
  Heuristic choice;
};

// The heuristics take longer than most products, so all threads share their results.
class HeuristicCache {
 public:
  std::optional<Heuristic> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key);
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const Key& key, const Heuristic& choice) {
    constexpr size_t most = 65536;
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= most) kept_.clear();
    kept_.emplace(key, choice);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Key, Heuristic, Hash> kept_;
};
HeuristicCache& heuristic_cache() {
  static auto* all = new HeuristicCache();
  return *all;
}

Layout make_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t leading, int64_t batches, int64_t step) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublas_lt().layout_create(&raw, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading),
        "cublasLtMatrixLayoutCreate");
  Layout layout(raw);
  if (batches > 1) {
    const auto count = static_cast<int32_t>(batches);
    check(cublas_lt().layout_set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "cublasLtMatrixLayoutSetAttribute");
    check(cublas_lt().layout_set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
          "cublasLtMatrixLayoutSetAttribute");
  }
  return layout;
}

Heuristic choose(const Key& key, const Plan& plan) {
  const CublasLt& lt = cublas_lt();
  cublasLtMatmulPreference_t raw = nullptr;
  check(lt.preference_create(&raw), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreferenceOpaque_t> preference(raw);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(lt.preference_set(raw, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  // NVIDIA's recommendation for Hopper; less for older architectures.
  const size_t most = device_traits(key.device).capability >= 90 ? size_t{32} << 20 : size_t{4} << 20;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.a_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.b_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.result_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.result_alignment);
  if (!key.reduced) {
    const auto mask = static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, mask);
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = lt.heuristic(handle_of(key.device), plan.operation.get(), plan.a.get(), plan.b.get(),
                                             plan.result.get(), plan.result.get(), raw, 1, &found, &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "cublasLtMatmulAlgoGetHeuristic");
  const bool possible = status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
  return {found.algo, found.workspaceSize, possible};
}

Plan make_plan(const Key& key, const Precision& precision) {
  const CublasLt& lt = cublas_lt();
  Plan plan{};
  cublasLtMatmulDesc_t operation = nullptr;
  check(lt.matmul_desc_create(&operation, precision.compute, precision.scale), "cublasLtMatmulDescCreate");
  plan.operation.reset(operation);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(lt.matmul_desc_set(operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, key.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, key.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (const auto epilogue = static_cast<Epilogue>(key.epilogue); epilogue != Epilogue::none) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue == Epilogue::bias            ? CUBLASLT_EPILOGUE_BIAS
                                       : epilogue == Epilogue::bias_and_relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                                             : CUBLASLT_EPILOGUE_GELU_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, precision.element);
  }
  plan.a = make_layout(precision.element, key.a_transposed ? key.inner : key.rows,
                       key.a_transposed ? key.rows : key.inner, key.a_leading, key.batches, key.a_step);
  plan.b = make_layout(precision.element, key.b_transposed ? key.columns : key.inner,
                       key.b_transposed ? key.inner : key.columns, key.b_leading, key.batches, key.b_step);
  plan.result = make_layout(precision.element, key.rows, key.columns, key.result_leading, key.batches, key.result_step);

  if (const auto known = heuristic_cache().find(key)) {
    plan.choice = *known;
  } else {
    plan.choice = choose(key, plan);
    heuristic_cache().keep(key, plan.choice);
  }
  return plan;
}

// One cache per thread: a plan holds the address of the bias while it runs.
Plan& plan_for(const Key& key, const Precision& precision) {
  constexpr size_t most = 4096;
  thread_local std::unordered_map<Key, Plan, Hash> kept;
  if (auto found = kept.find(key); found != kept.end()) return found->second;
  if (kept.size() >= most) kept.clear();
  return kept.emplace(key, make_plan(key, precision)).first->second;
}

}  // namespace

bool multiplies(int32_t dtype) {
  return dtype == CB_FLOAT16 || dtype == CB_BFLOAT16 || dtype == CB_FLOAT32 || dtype == CB_FLOAT64 ||
         dtype == CB_COMPLEX64 || dtype == CB_COMPLEX128;
}

bool multiply(const Call& call, const Gemm& gemm, cb_scalar alpha, cb_scalar beta) {
  const Precision precision = precision_of(gemm.dtype);
  const bool batch = gemm.batches > 1;
  const Key key{.rows = gemm.rows,
                .columns = gemm.columns,
                .inner = gemm.inner,
                .batches = gemm.batches,
                .a_leading = gemm.a.leading,
                .a_step = batch ? gemm.a.step : 0,
                .b_leading = gemm.b.leading,
                .b_step = batch ? gemm.b.step : 0,
                .result_leading = gemm.result_leading,
                .result_step = batch ? gemm.result_step : 0,
                .device = call.device(),
                .element = precision.element,
                .compute = precision.compute,
                .a_alignment = alignment_of(gemm.a.data),
                .b_alignment = alignment_of(gemm.b.data),
                .result_alignment = alignment_of(gemm.result),
                .a_transposed = gemm.a.transposed,
                .b_transposed = gemm.b.transposed,
                .epilogue = static_cast<int32_t>(gemm.epilogue),
                .reduced = (gemm.dtype == CB_BFLOAT16 ? settings().bfloat16_reduced : settings().float16_reduced) != 0};
  Plan& plan = plan_for(key, precision);
  if (!plan.choice.possible) return false;
  if (gemm.epilogue != Epilogue::none)
    check(cublas_lt().matmul_desc_set(plan.operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &gemm.bias,
                                      sizeof gemm.bias),
          "cublasLtMatmulDescSetAttribute");
  // Alpha and beta in the type that the library scales by.
  union Factor {
    float single[2];
    double full[2];
  };
  const auto factor = [&](const cb_scalar& scalar) {
    Factor value{};
    if (precision.scale == CUDA_R_64F || precision.scale == CUDA_C_64F) {
      value.full[0] = scalar.re;
      value.full[1] = scalar.im;
    } else {
      value.single[0] = static_cast<float>(scalar.re);
      value.single[1] = static_cast<float>(scalar.im);
    }
    return value;
  };
  const Factor by = factor(alpha), keep = factor(beta);
  const Workspace workspace(call, plan.choice.workspace);
  check(cublas_lt().matmul(handle_of(call.device()), plan.operation.get(), &by, gemm.a.data, plan.a.get(), gemm.b.data,
                           plan.b.get(), &keep, gemm.result, plan.result.get(), gemm.result, plan.result.get(),
                           &plan.choice.algorithm, workspace.data(), plan.choice.workspace, call.stream()),
        "cublasLtMatmul");
  return true;
}

}  // namespace candelabra::cuda
