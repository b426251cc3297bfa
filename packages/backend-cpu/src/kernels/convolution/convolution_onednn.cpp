#include "kernels/convolution/convolution_onednn.hpp"

#include <string_view>

#include "gemm/gemm_onednn.hpp"
#include "threads/deterministic.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"
#include "vendor/packed_weights.hpp"
#include "vendor/primitive_cache.hpp"

namespace candelabra::cpu {
namespace {

using dnnl::memory;
using Sizes = std::array<int64_t, 5>;

enum class Layout { plain, channels_last, blocked };

Sizes input_sizes(const ConvolutionShape& s) {
  return {s.batch, s.input_channels, s.input[0], s.input[1], s.input[2]};
}
Sizes output_sizes(const ConvolutionShape& s) {
  return {s.batch, s.output_channels, s.output[0], s.output[1], s.output[2]};
}

Sizes dense_strides(const Sizes& n, Layout layout) {
  if (layout == Layout::channels_last) return {n[1] * n[2] * n[3] * n[4], 1, n[3] * n[4] * n[1], n[4] * n[1], n[1]};
  return {n[1] * n[2] * n[3] * n[4], n[2] * n[3] * n[4], n[3] * n[4], n[4], 1};
}

// Whether strides match a layout. Dimensions of size 1 match with any stride.
bool has_layout(const Sizes& sizes, const Sizes& strides, Layout layout) {
  Sizes dense = dense_strides(sizes, layout);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && strides[d] != dense[d]) return false;
  return true;
}

bool is_only_channels_last(const Sizes& sizes, const Sizes& strides) {
  return has_layout(sizes, strides, Layout::channels_last) && !has_layout(sizes, strides, Layout::plain);
}

// Blocked memory is several times faster in oneDNN than plain memory, reorders included, except in
// the two cases below.
Layout choose_layout(ConvolutionKind kind, const ConvolutionShape& s, const ConvolutionOperand& input,
                     const ConvolutionOperand& output) {
  if (is_only_channels_last(input_sizes(s), input.strides) || is_only_channels_last(output_sizes(s), output.strides))
    return Layout::channels_last;
  bool pointwise = s.groups == 1 && s.kernel == std::array<int64_t, 3>{1, 1, 1} && s.stride == s.kernel &&
                   s.padding == std::array<int64_t, 3>{0, 0, 0};
  if (pointwise) return Layout::plain;  // a product of matrices without reorders
  if (kind == ConvolutionKind::input_gradient && s.groups == 1 && s.input_channels < 8)
    return Layout::plain;  // few channels do not fill a block
  return Layout::blocked;
}

// Sizes or strides in oneDNN's form: without the depth if there are two spatial dimensions.
memory::dims counted(const Sizes& values, int spatial) {
  memory::dims result(values.begin(), values.end());
  if (spatial == 2) result.erase(result.begin() + 2);
  return result;
}

memory::desc description(int spatial, const Sizes& sizes, const Sizes& strides, memory::data_type type) {
  return memory::desc(counted(sizes, spatial), type, counted(strides, spatial));
}

memory::desc activation(int spatial, const Sizes& sizes, memory::data_type type, Layout layout) {
  if (layout == Layout::blocked) return memory::desc(counted(sizes, spatial), type, memory::format_tag::any);
  return description(spatial, sizes, dense_strides(sizes, layout), type);
}

// Describes the caller's tensor by its own strides, or by equivalent dense ones, so that equal
// layouts compare equal.
memory::desc callers_activation(int spatial, const Sizes& sizes, const Sizes& strides, memory::data_type type,
                                Layout layout) {
  Layout first = layout == Layout::channels_last ? Layout::channels_last : Layout::plain;
  Layout second = layout == Layout::channels_last ? Layout::plain : Layout::channels_last;
  for (Layout candidate : {first, second})
    if (has_layout(sizes, strides, candidate))
      return description(spatial, sizes, dense_strides(sizes, candidate), type);
  return description(spatial, sizes, strides, type);
}

memory::dims weight_sizes(const ConvolutionShape& s) {
  memory::dims all = counted({s.output_channels, s.group_inputs(), s.kernel[0], s.kernel[1], s.kernel[2]}, s.spatial);
  if (s.groups == 1) return all;
  all[0] = s.group_outputs();
  all.insert(all.begin(), s.groups);
  return all;
}

memory::desc callers_weight(const ConvolutionShape& s, const Sizes& strides, memory::data_type type) {
  Sizes sizes{s.output_channels, s.group_inputs(), s.kernel[0], s.kernel[1], s.kernel[2]};
  Sizes used = has_layout(sizes, strides, Layout::plain) ? dense_strides(sizes, Layout::plain) : strides;
  memory::dims all = counted(used, s.spatial);
  if (s.groups != 1) all.insert(all.begin(), used[0] * s.group_outputs());
  return memory::desc(weight_sizes(s), type, all);
}

// One tensor of a primitive: the caller's layout, the primitive's layout, and the reorder if they
// differ.
struct Port {
  memory::desc callers, own;
  dnnl::reorder reorder;
  bool differs = false;

  void connect(bool is_result) {
    differs = callers != own;
    if (!differs) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc &from = is_result ? own : callers, &to = is_result ? callers : own;
    dnnl::reorder::primitive_desc description(onednn_engine(), from, onednn_engine(), to, attributes);
    scratchpad = description.scratchpad_desc();
    reorder = dnnl::reorder(description);
  }
  memory::desc scratchpad;
};

struct Convolution {
  dnnl::primitive primitive;
  Port input, weight, output;
  memory::desc bias, scratchpad;
};

bool is_reference(const char* implementation) {
  return std::string_view(implementation).find("ref") != std::string_view::npos;
}

struct Steps {
  memory::dims stride, dilation, before, after;
  explicit Steps(const ConvolutionShape& s) {
    for (int d = 3 - s.spatial; d < 3; ++d) {
      stride.push_back(s.stride[d]);
      dilation.push_back(s.dilation[d] - 1);
      before.push_back(s.padding[d]);
      // Exact: negative if no window reaches the end of the input, which oneDNN accepts.
      after.push_back((s.output[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1 - s.input[d] -
                      s.padding[d]);
    }
  }
};

std::unique_ptr<Convolution> make(ConvolutionKind kind, memory::data_type type, const ConvolutionShape& s,
                                  const Sizes& input_strides, const Sizes& weight_strides, bool has_bias,
                                  const Sizes& output_strides, Layout layout) {
  using namespace dnnl;
  memory::desc input = activation(s.spatial, input_sizes(s), type, layout),
               output = activation(s.spatial, output_sizes(s), type, layout);
  memory::desc weight(weight_sizes(s), type, memory::format_tag::any);
  memory::desc bias;
  if (has_bias) bias = memory::desc({s.output_channels}, type, memory::format_tag::a);
  Steps g(s);
  primitive_attr attributes;
  attributes.set_scratchpad_mode(scratchpad_mode::user);
  auto made = std::make_unique<Convolution>();
  auto adopt = [&](const auto& description, const memory::desc& in, const memory::desc& out) {
    made->input.own = in;
    made->weight.own =
        kind == ConvolutionKind::weight_gradient ? description.diff_weights_desc() : description.weights_desc();
    made->output.own = out;
    made->scratchpad = description.scratchpad_desc();
    made->primitive = primitive(description.get());
  };
  try {
    // Gradients need the forward primitive as a hint. forward_inference would prefer channels-last,
    // which costs more to reorder.
    auto forward = [&](const memory::desc& with_bias) {
      return has_bias ? convolution_forward::primitive_desc(onednn_engine(), prop_kind::forward_training,
                                                            algorithm::convolution_direct, input, weight, with_bias,
                                                            output, g.stride, g.dilation, g.before, g.after, attributes)
                      : convolution_forward::primitive_desc(onednn_engine(), prop_kind::forward_training,
                                                            algorithm::convolution_direct, input, weight, output,
                                                            g.stride, g.dilation, g.before, g.after, attributes);
    };
    auto hint = forward(bias);
    switch (kind) {
      case ConvolutionKind::forward:
        if (is_reference(hint.impl_info_str())) return nullptr;
        made->bias = bias;
        adopt(hint, hint.src_desc(), hint.dst_desc());
        break;
      case ConvolutionKind::input_gradient: {
        convolution_backward_data::primitive_desc description(onednn_engine(), algorithm::convolution_direct, input,
                                                              weight, output, g.stride, g.dilation, g.before, g.after,
                                                              hint, attributes);
        if (is_reference(description.impl_info_str())) return nullptr;
        adopt(description, description.diff_src_desc(), description.diff_dst_desc());
        break;
      }
      case ConvolutionKind::weight_gradient: {
        convolution_backward_weights::primitive_desc description(onednn_engine(), algorithm::convolution_direct, input,
                                                                 weight, output, g.stride, g.dilation, g.before,
                                                                 g.after, hint, attributes);
        if (is_reference(description.impl_info_str())) return nullptr;
        adopt(description, description.src_desc(), description.diff_dst_desc());
        break;
      }
    }
    made->input.callers = callers_activation(s.spatial, input_sizes(s), input_strides, type, layout);
    made->weight.callers = callers_weight(s, weight_strides, type);
    made->output.callers = callers_activation(s.spatial, output_sizes(s), output_strides, type, layout);
    made->input.connect(kind == ConvolutionKind::input_gradient);
    made->weight.connect(kind == ConvolutionKind::weight_gradient);
    made->output.connect(kind == ConvolutionKind::forward);
    return made;
  } catch (const dnnl::error& error) {
    if (is_unimplemented(error)) return nullptr;
    throw;
  }
}

void execute(const dnnl::primitive& primitive, std::span<const dnnl_exec_arg_t> arguments) {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), onednn_stream().get(),
                                                 static_cast<int>(arguments.size()), arguments.data()),
                          "could not execute a primitive");
}

// The caller's memory, or memory in the primitive's layout: temporary, or from the packed-weight
// cache.
class Buffer {
 public:
  Buffer(const Port& port, const ConvolutionOperand& operand)
      : port_(port), operand_(operand), callers_(onednn_memory(port.callers, operand.data)) {
    if (!port.differs) return;
    const size_t bytes = port.own.get_size();
    if (operand.contents != 0) {
      room_ = find_packed_weight(wanted(), is_to_keep_);
      is_loaded_ = room_ != nullptr;
      if (is_to_keep_) room_ = room_for_weight(bytes);
      is_to_keep_ = is_to_keep_ && room_;
    }
    if (!room_) room_ = std::make_shared<Scratch<char>>(static_cast<int64_t>(bytes));
    own_ = onednn_memory(port.own, room_->data());
  }
  dnnl_memory_t get() const { return port_.differs ? own_.get() : callers_.get(); }
  void load() const {
    if (is_loaded_) return;
    move(callers_, own_);
    if (is_to_keep_) cache_packed_weight(wanted(), room_);
  }
  void store() const { move(own_, callers_); }

 private:
  void move(const memory& from, const memory& to) const {
    if (!port_.differs) return;
    Scratch<char> room(static_cast<int64_t>(port_.scratchpad.get_size()));
    memory scratchpad = onednn_memory(port_.scratchpad, room.data());
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}, {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
    execute(port_.reorder, arguments);
  }
  WantedWeight wanted() const { return {operand_.contents, operand_.data, port_.callers, port_.own}; }

  const Port& port_;
  const ConvolutionOperand& operand_;
  memory callers_, own_;
  std::shared_ptr<Scratch<char>> room_;
  bool is_loaded_ = false, is_to_keep_ = false;
};

const char* name_of(ConvolutionKind kind) {
  switch (kind) {
    case ConvolutionKind::forward:
      return "convolution";
    case ConvolutionKind::input_gradient:
      return "convolution_backward_input";
    default:
      return "convolution_backward_weight";
  }
}

// The whole of a shape in one call of oneDNN.
bool convolve(ConvolutionKind kind, int32_t dtype, const ConvolutionShape& shape, const ConvolutionOperand& input,
              const ConvolutionOperand& weight, const void* bias, const ConvolutionOperand& output) {
  thread_local PrimitiveCache<Convolution> cache(256);
  const ConvolutionShape& s = shape;
  // As for batches of small products, a team pays off above this many multiplications.
  constexpr int64_t few = int64_t{1} << 17;
  const bool is_small = s.batch * s.output_channels * s.output_plane() <= few / (s.group_inputs() * s.kernel_volume());
  const int32_t threads = is_small || in_parallel() || is_deterministic() ? 1 : thread_count();
  const LibraryThreads of_library(threads);
  return with_onednn(name_of(kind), [&] {
    PrimitiveKey key;
    key.add(kind, s.spatial, dtype, bias != nullptr, threads, s.batch, s.groups, s.input_channels, s.output_channels);
    for (const auto* each : {&s.input, &s.output, &s.kernel, &s.stride, &s.padding, &s.dilation}) key.add_all(*each);
    key.add_all(input.strides);
    key.add_all(weight.strides);
    key.add_all(output.strides);
    const Convolution* found = cache.find(key, [&] {
      return make(kind, onednn_type(dtype), s, input.strides, weight.strides, bias != nullptr, output.strides,
                  choose_layout(kind, s, input, output));
    });
    if (!found) return false;

    Buffer source(found->input, input), filter(found->weight, weight), result(found->output, output);
    Scratch<char> room(static_cast<int64_t>(found->scratchpad.get_size()));
    memory scratchpad = onednn_memory(found->scratchpad, room.data());
    switch (kind) {
      case ConvolutionKind::forward: {
        source.load();
        filter.load();
        memory extra;
        dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, source.get()},
                                        {DNNL_ARG_WEIGHTS, filter.get()},
                                        {DNNL_ARG_DST, result.get()},
                                        {DNNL_ARG_SCRATCHPAD, scratchpad.get()},
                                        {}};
        if (bias) {
          extra = onednn_memory(found->bias, bias);
          arguments[4] = {DNNL_ARG_BIAS, extra.get()};
        }
        execute(found->primitive, {arguments, bias ? size_t{5} : size_t{4}});
        result.store();
        break;
      }
      case ConvolutionKind::input_gradient: {
        filter.load();
        result.load();
        dnnl_exec_arg_t arguments[] = {{DNNL_ARG_DIFF_SRC, source.get()},
                                       {DNNL_ARG_WEIGHTS, filter.get()},
                                       {DNNL_ARG_DIFF_DST, result.get()},
                                       {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
        execute(found->primitive, arguments);
        source.store();
        break;
      }
      case ConvolutionKind::weight_gradient: {
        source.load();
        result.load();
        dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, source.get()},
                                       {DNNL_ARG_DIFF_WEIGHTS, filter.get()},
                                       {DNNL_ARG_DIFF_DST, result.get()},
                                       {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
        execute(found->primitive, arguments);
        filter.store();
        break;
      }
    }
    return true;
  });
}

}  // namespace

bool onednn_convolution(ConvolutionKind kind, int32_t dtype, const ConvolutionShape& shape,
                        const ConvolutionOperand& input, const ConvolutionOperand& weight, const void* bias,
                        const ConvolutionOperand& output) {
  if (!has_product_instructions(dtype)) return false;
  // A batch that takes seconds is cut into samples, so that it can be interrupted. The gradient of
  // the weight is a sum over samples, whose bits would change.
  constexpr int64_t most_operations = int64_t{1} << 35;
  const int64_t of_sample = shape.output_channels * shape.output_plane() * shape.group_inputs() * shape.kernel_volume();
  const int64_t samples = std::max<int64_t>(1, most_operations / std::max<int64_t>(1, of_sample));
  if (samples >= shape.batch || kind == ConvolutionKind::weight_gradient)
    return convolve(kind, dtype, shape, input, weight, bias, output);
  const auto from_sample = [&](ConvolutionOperand operand, int64_t sample) {
    operand.data =
        static_cast<char*>(operand.data) + sample * operand.strides[0] * static_cast<int64_t>(cb_dtype_size(dtype));
    return operand;
  };
  for (int64_t sample = 0; sample < shape.batch; sample += samples) {
    poll_interruption();
    ConvolutionShape part = shape;
    part.batch = std::min(samples, shape.batch - sample);
    if (!convolve(kind, dtype, part, from_sample(input, sample), weight, bias, from_sample(output, sample)))
      return false;
  }
  return true;
}

}  // namespace candelabra::cpu
