#include "vendor/cudnn/cudnn_attention.hpp"
#include "candelabra/arguments/attention.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <limits>
#include <map>

#include "drivers/move.hpp"
#include "dtypes.hpp"
#include "runtime/device.hpp"
#include "runtime/launch.hpp"
#include "runtime/settings.hpp"
#include "vendor/cudnn/cudnn_convolution.hpp"

namespace candelabra::cuda {
namespace {

using Dims = std::array<int64_t, 4>;

// Ids of the tensors that the call supplies.
enum Id : int64_t {
  query_id = 1,
  key_id,
  value_id,
  output_id,
  logarithms_id,
  grad_id,
  grad_query_id,
  grad_key_id,
  grad_value_id,
  scale_id,
  none_id
};

int64_t alignment_of(const void* address) {
  return int64_t{1} << std::min(4, std::countr_zero(reinterpret_cast<uintptr_t>(address) | 16));
}

Dims dense(const Dims& n) {
  return {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
}

// Builds a graph of operations; owns the descriptors that they refer to.
class Graph {
 public:
  struct Tensor {
    size_t index;
    Dims sizes;
  };

  explicit Graph(cudnnDataType_t type) : type_(type) {}

  Tensor given(int64_t id, const AttentionTensor& t) {
    return add(id, type_, t.sizes, t.strides, alignment_of(t.data), cudnn::Storage::Device);
  }
  Tensor given_float(int64_t id, const AttentionTensor& t) {
    return add(id, CUDNN_DATA_FLOAT, t.sizes, t.strides, 4, cudnn::Storage::Device);
  }
  // The same id with the last two dimensions transposed.
  Tensor given_transposed(int64_t id, const AttentionTensor& t) {
    return add(id, type_, {t.sizes[0], t.sizes[1], t.sizes[3], t.sizes[2]},
               {t.strides[0], t.strides[1], t.strides[3], t.strides[2]}, alignment_of(t.data), cudnn::Storage::Device);
  }
  Tensor number(int64_t id) { return add(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, 4, cudnn::Storage::Host); }
  // A virtual tensor, which is never stored.
  Tensor intermediate(const Dims& sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return add(next_++, type, sizes, dense(sizes), 16, cudnn::Storage::Virtual);
  }
  Tensor intermediate_half(const Dims& sizes) { return intermediate(sizes, type_); }

  void multiply(Tensor a, Tensor b, Tensor result) {
    cudnn::Descriptor mode(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    mode.set_choice(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    mode.finalize();
    cudnn::Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[result.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
    add_operation(std::move(operation), std::move(mode));
  }

  void pointwise(cudnnPointwiseMode_t formula, Tensor x, const Tensor* b, Tensor result, const Tensor* truth = nullptr,
                 int64_t axis = -1) {
    cudnn::Descriptor mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode.set_choice(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, formula);
    mode.set_choice(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (axis >= 0) mode.set_integer(CUDNN_ATTR_POINTWISE_AXIS, axis);
    mode.finalize();
    cudnn::Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x.index]);
    if (b) operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[b->index]);
    if (truth) operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[truth->index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[result.index]);
    add_operation(std::move(operation), std::move(mode));
  }
  Tensor binary(cudnnPointwiseMode_t formula, Tensor x, Tensor b) {
    const Tensor result = intermediate(x.sizes);
    pointwise(formula, x, &b, result);
    return result;
  }
  Tensor unary(cudnnPointwiseMode_t formula, Tensor x) {
    const Tensor result = intermediate(x.sizes);
    pointwise(formula, x, nullptr, result);
    return result;
  }

  // Reduces the last dimension.
  Tensor reduce(cudnnReduceTensorOp_t how, Tensor x) {
    const Tensor result = intermediate({x.sizes[0], x.sizes[1], x.sizes[2], 1});
    reduce(how, x, result);
    return result;
  }
  void reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor result) {
    cudnn::Descriptor mode(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    mode.set_choice(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
    mode.set_choice(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    mode.finalize();
    cudnn::Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[result.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
    add_operation(std::move(operation), std::move(mode));
  }
  // Multiplies for each query head and sums over the query heads that share a key head.
  void multiply_shared(Tensor a, Tensor b, Tensor result) {
    if (a.sizes[1] == result.sizes[1]) return multiply(a, b, result);
    const Tensor each_head = intermediate_half({a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[3]});
    multiply(a, b, each_head);
    reduce(CUDNN_REDUCE_TENSOR_ADD, each_head, result);
  }

  // Transposes the last two dimensions of a virtual tensor.
  Tensor transposed(Tensor x, cudnnDataType_t type) {
    const Dims sizes{x.sizes[0], x.sizes[1], x.sizes[3], x.sizes[2]};
    const Dims strides{x.sizes[1] * x.sizes[2] * x.sizes[3], x.sizes[2] * x.sizes[3], 1, x.sizes[3]};
    const Tensor result = add(next_++, type, sizes, strides, 16, cudnn::Storage::Virtual);
    cudnn::Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_[x.index]);
    operation.set_descriptor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_[result.index]);
    operation.finalize();
    operations_.push_back(std::move(operation));
    return result;
  }

  cudnnDataType_t type() const { return type_; }
  std::span<const cudnn::Descriptor> operations() const { return operations_; }

 private:
  Tensor add(int64_t id, cudnnDataType_t type, const Dims& sizes, const Dims& strides, int64_t alignment,
             cudnn::Storage storage) {
    tensors_.push_back(cudnn::tensor(id, type, sizes, strides, alignment, storage));
    return {tensors_.size() - 1, sizes};
  }
  void add_operation(cudnn::Descriptor operation, cudnn::Descriptor mode) {
    operation.finalize();
    operations_.push_back(std::move(operation));
    modes_.push_back(std::move(mode));
  }

  cudnnDataType_t type_;
  int64_t next_ = 100;
  std::vector<cudnn::Descriptor> tensors_, modes_, operations_;
};

using Tensor = Graph::Tensor;

// Scaled scores; minus infinity where causal masking hides the key from the query.
Tensor make_scores(Graph& graph, const CudnnAttention& a, Tensor query, Tensor key_transposed) {
  const Dims sizes{a.query.sizes[0], a.query.sizes[1], a.query.sizes[2], a.key.sizes[2]};
  Tensor scores = graph.intermediate(sizes);
  graph.multiply(query, key_transposed, scores);
  scores = graph.binary(CUDNN_POINTWISE_MUL, scores, graph.number(scale_id));
  if (!a.causal) return scores;
  const Tensor rows = graph.intermediate(sizes, CUDNN_DATA_INT32),
               columns = graph.intermediate(sizes, CUDNN_DATA_INT32);
  graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, rows, nullptr, 2);
  graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, columns, nullptr, 3);
  const Tensor visible = graph.intermediate(sizes, CUDNN_DATA_BOOLEAN), masked = graph.intermediate(sizes),
               none = graph.number(none_id);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, rows, &columns, visible);
  graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, &none, masked, &visible);
  return masked;
}

void build_forward(Graph& graph, const CudnnAttention& a) {
  const Tensor scores = make_scores(graph, a, graph.given(query_id, a.query), graph.given_transposed(key_id, a.key));
  const Tensor largest = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
  const Tensor powers = graph.unary(CUDNN_POINTWISE_EXP, graph.binary(CUDNN_POINTWISE_SUB, scores, largest));
  const Tensor sums = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
  const Tensor logarithms = graph.given_float(logarithms_id, a.logarithms);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, std::array{graph.unary(CUDNN_POINTWISE_LOG, sums)}.data(), logarithms);
  const Tensor weights = graph.intermediate_half(scores.sizes);
  graph.pointwise(CUDNN_POINTWISE_DIV, powers, &sums, weights);
  graph.multiply(weights, graph.given(value_id, a.value), graph.given(output_id, a.output));
}

void build_backward(Graph& graph, const CudnnAttention& a) {
  const Tensor grad = graph.given(grad_id, a.grad), query = graph.given(query_id, a.query);
  const Tensor products = graph.binary(CUDNN_POINTWISE_MUL, grad, graph.given(output_id, a.output));
  const Tensor means = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products);
  const Tensor scores = make_scores(graph, a, query, graph.given_transposed(key_id, a.key));
  const Tensor shifted = graph.binary(CUDNN_POINTWISE_SUB, scores, graph.given_float(logarithms_id, a.logarithms));
  const Tensor weights = graph.unary(CUDNN_POINTWISE_EXP, shifted);
  graph.multiply_shared(graph.transposed(weights, graph.type()), grad, graph.given(grad_value_id, a.grad_value));
  const Tensor of_weights = graph.intermediate(scores.sizes);
  graph.multiply(grad, graph.given_transposed(value_id, a.value), of_weights);
  const Tensor slopes =
      graph.binary(CUDNN_POINTWISE_MUL, graph.binary(CUDNN_POINTWISE_SUB, of_weights, means), weights);
  const Tensor scaled = graph.intermediate_half(scores.sizes), scale = graph.number(scale_id);
  graph.pointwise(CUDNN_POINTWISE_MUL, slopes, &scale, scaled);
  graph.multiply(scaled, graph.given(key_id, a.key), graph.given(grad_query_id, a.grad_query));
  graph.multiply_shared(graph.transposed(scaled, graph.type()), query, graph.given(grad_key_id, a.grad_key));
}

}  // namespace

std::vector<cudnn::Plan> attention_plans(const cudnn::Target& target, const CudnnAttention& a,
                                         const cudnn::Constraints& constraints, size_t most) {
  Graph graph(cudnn::data_type(a.dtype));
  if (a.backward)
    build_backward(graph, a);
  else
    build_forward(graph, a);
  return cudnn::find_plans(target, graph.operations(), constraints, most);
}

namespace {

// The cache key of a plan. All addresses are aligned to 16 bytes.
struct Key {
  int device;
  int32_t dtype;
  bool backward, causal;
  std::array<Dims, 3> sizes;
  std::array<Dims, 8> strides;
  auto operator<=>(const Key&) const = default;
};

struct CachedPlan {
  cudnn::Plan plan;
  bool possible;
};

// A tensor as the fused kernels need it: rows without gaps, every row aligned to 16 bytes. Other
// tensors are copied.
class AlignedTensor {
 public:
  AlignedTensor(const Call& call, const cb_tensor& t) : original_(t) {
    std::copy_n(t.sizes, 4, tensor_.sizes.begin());
    std::copy_n(t.strides, 4, tensor_.strides.begin());
    tensor_.data = t.data;
    const Dims packed = dense(tensor_.sizes);
    bool is_aligned = alignment_of(t.data) == 16;
    for (size_t d = 0; d < 4; ++d) {
      if (tensor_.sizes[d] == 1) tensor_.strides[d] = packed[d];
      is_aligned =
          is_aligned && (d == 3 ? tensor_.strides[d] == 1 : tensor_.strides[d] > 0 && tensor_.strides[d] % 8 == 0);
    }
    if (is_aligned) return;
    memory_ = Workspace(call, static_cast<size_t>(t.numel * itemsize(t.dtype)));
    tensor_.data = memory_.data();
    tensor_.strides = packed;
    is_copy_ = true;
  }
  const AttentionTensor& tensor() const { return tensor_; }
  const AttentionTensor& read(const Call& call) const {
    if (is_copy_) move_elements(call, described(), original_);
    return tensor_;
  }
  void write_back(const Call& call) const {
    if (is_copy_) move_elements(call, original_, described());
  }

 private:
  cb_tensor described() const {
    cb_tensor result = original_;
    result.data = const_cast<void*>(tensor_.data);
    result.strides = tensor_.strides.data();
    return result;
  }
  cb_tensor original_;
  AttentionTensor tensor_;
  Workspace memory_;
  bool is_copy_ = false;
};

// Whether cuDNN's fused kernels may be used for these arguments.
bool supports(const cb_tensor& query, const cb_tensor& key, const cb_tensor& value, const cb_tensor* mask) {
  constexpr int64_t widest = 256, most = (int64_t{1} << 31) - 1;
  if (!is_half_dtype(query.dtype) || !settings().cudnn_attention || !uses_cudnn()) return false;
  // With a mask a query may see no key. cuDNN returns NaN for it, our kernels zeros.
  if (mask || query.numel == 0 || key.numel == 0 || value.numel == 0) return false;
  if (std::max({query.numel, key.numel, value.numel}) > most) return false;
  const int64_t width = query.sizes[3], columns = value.sizes[3];
  return width % 8 == 0 && columns % 8 == 0 && std::max(width, columns) <= widest;
}

bool run(const Call& call, const CudnnAttention& a, double scale) {
  const Key key{call.device(),
                a.dtype,
                a.backward,
                a.causal,
                {a.query.sizes, a.key.sizes, a.value.sizes},
                {a.query.strides, a.key.strides, a.value.strides, a.output.strides, a.grad.strides,
                 a.grad_query.strides, a.grad_key.strides, a.grad_value.strides}};
  constexpr size_t cache_limit = 1024;
  thread_local std::map<Key, CachedPlan> cache;
  const cudnn::Target target = cudnn::target_of(call);
  auto found = cache.find(key);
  if (found == cache.end()) {
    std::vector<cudnn::Plan> plans = attention_plans(target, a, {false, false, std::numeric_limits<int64_t>::max()}, 1);
    CachedPlan choice{{}, !plans.empty()};
    if (choice.possible) choice.plan = std::move(plans.front());
    if (cache.size() >= cache_limit) cache.clear();
    found = cache.emplace(key, std::move(choice)).first;
  }
  if (!found->second.possible) return false;
  const auto factor = static_cast<float>(scale);
  constexpr float none = -std::numeric_limits<float>::infinity();
  std::vector<std::pair<int64_t, const void*>> arguments{{query_id, a.query.data},           {key_id, a.key.data},
                                                         {value_id, a.value.data},           {output_id, a.output.data},
                                                         {logarithms_id, a.logarithms.data}, {scale_id, &factor}};
  if (a.causal) arguments.emplace_back(none_id, &none);
  if (a.backward)
    arguments.insert(arguments.end(), {{grad_id, a.grad.data},
                                       {grad_query_id, a.grad_query.data},
                                       {grad_key_id, a.grad_key.data},
                                       {grad_value_id, a.grad_value.data}});
  cudnn::execute(call, target, found->second.plan, arguments);
  return true;
}

AttentionTensor column_of(const cb_tensor& logarithms) {
  AttentionTensor result{logarithms.data, {logarithms.sizes[0], logarithms.sizes[1], logarithms.sizes[2], 1}, {}};
  result.strides = dense(result.sizes);
  return result;
}

}  // namespace

bool cudnn_attention_forward(const Call& call) {
  const arguments::ScaledDotProductAttention args(call);
  if (!supports(*args.query, *args.key, *args.value, args.mask)) return false;
  const AlignedTensor query(call, *args.query), key(call, *args.key), value(call, *args.value),
      output(call, call.output(0));
  CudnnAttention a{};
  a.dtype = args.query->dtype;
  a.causal = args.is_causal;
  a.query = query.read(call);
  a.key = key.read(call);
  a.value = value.read(call);
  a.output = output.tensor();
  a.logarithms = column_of(call.output(1));
  if (!run(call, a, args.scale)) return false;
  output.write_back(call);
  return true;
}

bool cudnn_attention_backward(const Call& call) {
  const arguments::ScaledDotProductAttentionBackward args(call);
  // cuDNN's sums for the gradients of queries have no fixed order.
  if (!supports(*args.query, *args.key, *args.value, args.mask) || settings().is_deterministic()) return false;
  const AlignedTensor query(call, *args.query), key(call, *args.key), value(call, *args.value),
      output(call, *args.output), grad(call, *args.grad);
  const AlignedTensor grad_query(call, call.output(0)), grad_key(call, call.output(1)),
      grad_value(call, call.output(2));
  CudnnAttention a{};
  a.dtype = args.query->dtype;
  a.backward = true;
  a.causal = args.is_causal;
  a.query = query.read(call);
  a.key = key.read(call);
  a.value = value.read(call);
  a.output = output.read(call);
  a.grad = grad.read(call);
  a.logarithms = column_of(*args.logsumexp);
  a.grad_query = grad_query.tensor();
  a.grad_key = grad_key.tensor();
  a.grad_value = grad_value.tensor();
  if (!run(call, a, args.scale)) return false;
  for (const AlignedTensor* made : {&grad_query, &grad_key, &grad_value}) made->write_back(call);
  return true;
}

}  // namespace candelabra::cuda
