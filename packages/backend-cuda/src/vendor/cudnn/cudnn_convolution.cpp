#include "vendor/cudnn/cudnn_convolution.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdlib>
#include <map>

#include "dtypes.hpp"
#include "runtime/device.hpp"
#include "runtime/settings.hpp"

namespace candelabra::cuda {
namespace {

// The alignment of an address, up to the 16 bytes that engines load at a time.
int64_t alignment_of(const void* address) {
  return int64_t{1} << std::min(4, std::countr_zero(reinterpret_cast<uintptr_t>(address) | 16));
}

// Ids of the tensors in a graph.
constexpr int64_t input_id = 'x', weight_id = 'w', output_id = 'y';

// The arguments that the choice of a plan depends on.
struct Key {
  int device;
  ConvolutionKind kind;
  int32_t dtype;
  int spatial;
  std::array<std::array<int64_t, 5>, 3> sizes, strides;
  std::array<int64_t, 3> alignments, stride, padding, dilation;
  bool deterministic, full_float32, measured;
  auto operator<=>(const Key&) const = default;
};

struct Choice {
  cudnn::Plan plan;
  bool possible;
};

cudnn::Descriptor describe(int64_t id, const Convolution& c, const ConvolutionTensor& t) {
  const auto first = static_cast<size_t>(3 - c.spatial);
  std::array<int64_t, 5> sizes{t.sizes[0], t.sizes[1]}, strides{t.strides[0], t.strides[1]};
  std::copy(t.sizes.begin() + 2 + static_cast<ptrdiff_t>(first), t.sizes.end(), sizes.begin() + 2);
  std::copy(t.strides.begin() + 2 + static_cast<ptrdiff_t>(first), t.strides.end(), strides.begin() + 2);
  const auto count = static_cast<size_t>(c.spatial) + 2;
  return cudnn::tensor(id, cudnn::data_type(c.dtype), std::span(sizes).first(count), std::span(strides).first(count),
                       alignment_of(t.data));
}

struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t input, weight, output, description, alpha, beta;
};
Names names_of(ConvolutionKind kind) {
  switch (kind) {
    case ConvolutionKind::InputGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionKind::WeightGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

// The largest workspace that a plan may need.
int64_t workspace_limit() {
  static const int64_t limit = [] {
    constexpr int64_t mebibyte = 1 << 20;
    const char* text = std::getenv("CANDELABRA_CUDNN_WORKSPACE_MIB");
    const long long given = text ? std::atoll(text) : 0;
    return (given > 0 ? static_cast<int64_t>(given) : 1024) * mebibyte;
  }();
  return limit;
}

}  // namespace

std::vector<cudnn::Plan> convolution_plans(const cudnn::Target& target, const Convolution& c,
                                           const cudnn::Constraints& constraints, size_t most) {
  const bool full = c.dtype == CB_FLOAT64;
  const auto last = [&](const std::array<int64_t, 3>& values) {
    return std::span(values).last(static_cast<size_t>(c.spatial));
  };
  cudnn::Descriptor geometry(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  geometry.set_choice(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                      full ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
  geometry.set_choice(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  geometry.set_integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, c.spatial);
  geometry.set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, last(c.dilation));
  geometry.set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, last(c.stride));
  geometry.set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, last(c.padding));
  geometry.set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, last(c.padding));
  geometry.finalize();
  const cudnn::Descriptor input = describe(input_id, c, c.input), weight = describe(weight_id, c, c.weight),
                          output = describe(output_id, c, c.output);
  const Names names = names_of(c.kind);
  std::array<cudnn::Descriptor, 1> operations{cudnn::Descriptor(names.operation)};
  cudnn::Descriptor& operation = operations[0];
  operation.set_descriptor(names.input, input);
  operation.set_descriptor(names.weight, weight);
  operation.set_descriptor(names.output, output);
  operation.set_descriptor(names.description, geometry);
  if (full) {
    operation.set_choice(names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set_choice(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set_choice(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set_choice(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  operation.finalize();
  return cudnn::find_plans(target, operations, constraints, most);
}

bool uses_cudnn() {
  return settings().cudnn_enabled && cudnn::available();
}

bool cudnn_convolution(const Call& call, const Convolution& c) {
  const Settings& chosen = settings();
  if (!uses_cudnn()) return false;
  const bool capturing = is_capturing(call.stream());
  const Key key{call.device(),
                c.kind,
                c.dtype,
                c.spatial,
                {c.input.sizes, c.weight.sizes, c.output.sizes},
                {c.input.strides, c.weight.strides, c.output.strides},
                {alignment_of(c.input.data), alignment_of(c.weight.data), alignment_of(c.output.data)},
                c.stride,
                c.padding,
                c.dilation,
                chosen.is_deterministic(),
                c.dtype == CB_FLOAT32 && !chosen.cudnn_tf32,
                chosen.cudnn_benchmark && !capturing};
  // One cache per thread, so that no two threads run a plan at the same time.
  constexpr size_t most_kept = 4096;
  thread_local std::map<Key, Choice> kept;
  const cudnn::Target target = cudnn::target_of(call);
  const std::array<std::pair<int64_t, const void*>, 3> arguments{
      {{input_id, c.input.data}, {weight_id, c.weight.data}, {output_id, c.output.data}}};
  auto found = kept.find(key);
  if (found == kept.end()) {
    const cudnn::Constraints constraints{key.deterministic, key.full_float32, workspace_limit()};
    const int limit = chosen.cudnn_benchmark_limit;
    const size_t most = !key.measured ? 1 : limit > 0 ? static_cast<size_t>(limit) : SIZE_MAX;
    std::vector<cudnn::Plan> plans = convolution_plans(target, c, constraints, most);
    Choice choice{{}, !plans.empty()};
    if (choice.possible) {
      const size_t best = plans.size() > 1 ? cudnn::fastest(call, target, plans, arguments) : 0;
      choice.plan = std::move(plans[best]);
    }
    if (kept.size() >= most_kept) kept.clear();
    found = kept.emplace(key, std::move(choice)).first;
  }
  if (!found->second.possible) return false;
  const cudnn::Plan& plan = found->second.plan;
  try {
    cudnn::execute(call, target, plan, arguments);
  } catch (const Failure& error) {
    if (error.status() != CB_OUT_OF_MEMORY || plan.workspace == 0) throw;
    // The workspace cannot be allocated: this time, use the plan with the smallest one.
    const std::vector<cudnn::Plan> frugal = convolution_plans(target, c, {key.deterministic, key.full_float32, 0}, 1);
    if (frugal.empty() || frugal[0].workspace >= plan.workspace) throw;
    cudnn::execute(call, target, frugal[0], arguments);
  }
  return true;
}

}  // namespace candelabra::cuda
