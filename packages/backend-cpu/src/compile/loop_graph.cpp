#include "compile/loop_graph.hpp"

#include <algorithm>
#include <cstring>

#include "compile/loop_text.hpp"
#include "kernels.hpp"
#include "memory/nontemporal.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {

namespace {

constexpr int64_t line_bytes = 64;
constexpr int64_t most_per_iteration = 64;  // elements
constexpr int most_addresses = 48;

bool is_streamed(const cb_tensor& output) {
  const auto bytes = output.numel * static_cast<int64_t>(cb_dtype_size(output.dtype));
  return bytes >= streaming_threshold() && output.offset % line_bytes == 0;
}

}  // namespace

LoopGraph::LoopGraph(const cb_graph& graph, const CodeSource& source) {
  for (int k = 0; k < graph.input_count; ++k) {
    const cb_tensor& input = graph.tensors[graph.inputs[k]];
    input_steps_.push_back(input.strides[0] * static_cast<int64_t>(cb_dtype_size(input.dtype)));
  }
  for (int k = 0; k < graph.tensor_count; ++k) {
    const cb_tensor& tensor = graph.tensors[k];
    if (tensor.flags & CB_TENSOR_NUMBER)
      std::memcpy(numbers_.emplace_back().data(), tensor.data, cb_dtype_size(tensor.dtype));
  }
  for (int k = 0; k < graph.output_count; ++k) {
    const cb_tensor& output = graph.tensors[graph.outputs[k]];
    output_steps_.push_back(static_cast<int64_t>(cb_dtype_size(output.dtype)));
    is_streamed_.push_back(is_streamed(output));
  }
  has_streams_ = std::ranges::count(is_streamed_, true) > 0;
  if (input_steps_.size() + numbers_.size() + output_steps_.size() > most_addresses)
    throw failure(CB_NOT_IMPLEMENTED, "more than %d tensors and numbers in one group", most_addresses);
  per_iteration_ = elements_per_iteration(graph);
  code_ = source(loop_text(graph, is_streamed_));
  function_ = code_->function();
}

// The elements of a tile that are not a whole iteration are computed in memory of the stack.
void LoopGraph::run_rest(void* const* addresses, int64_t begin, int64_t end) const {
  alignas(line_bytes) std::byte padded[most_addresses][most_per_iteration * 8];
  const size_t inputs = input_steps_.size(), outputs = output_steps_.size();
  const size_t first_output = inputs + numbers_.size();
  for (int64_t at = begin; at < end; at += per_iteration_) {
    const auto count = static_cast<size_t>(std::min(per_iteration_, end - at));
    void* moved[most_addresses];
    std::copy_n(addresses, first_output + outputs, moved);
    for (size_t k = 0; k < inputs; ++k) {
      const auto step = static_cast<size_t>(input_steps_[k]);
      if (step == 0) continue;
      moved[k] = padded[k];
      std::memcpy(padded[k], static_cast<std::byte*>(addresses[k]) + static_cast<size_t>(at) * step, count * step);
      std::memset(padded[k] + count * step, 0, (static_cast<size_t>(per_iteration_) - count) * step);
    }
    for (size_t k = first_output; k < first_output + outputs; ++k) moved[k] = padded[k];
    function_(moved, per_iteration_);
    for (size_t k = 0; k < outputs; ++k) {
      const auto step = static_cast<size_t>(output_steps_[k]);
      std::memcpy(static_cast<std::byte*>(addresses[first_output + k]) + static_cast<size_t>(at) * step,
                  padded[first_output + k], count * step);
    }
  }
}

void LoopGraph::run(const cb_graph_run& run) const {
  void* addresses[most_addresses];
  void** address = addresses;
  for (size_t k = 0; k < input_steps_.size(); ++k) *address++ = const_cast<void*>(run.inputs[k]);
  for (const auto& number : numbers_) *address++ = const_cast<std::byte*>(number.data());
  bool is_aligned = true;
  for (size_t k = 0; k < output_steps_.size(); ++k) {
    *address++ = run.outputs[k];
    is_aligned = is_aligned && !(is_streamed_[k] && reinterpret_cast<uintptr_t>(run.outputs[k]) % line_bytes);
  }
  // Streaming stores need whole cache lines; without them, all elements go by the stack.
  const int64_t whole = is_aligned ? run.numel / per_iteration_ * per_iteration_ : 0;
  if (whole > 0) function_(addresses, whole);
  if (whole < run.numel) run_rest(addresses, whole, run.numel);
  if (has_streams_) _mm_sfence();
}

}  // namespace candelabra::cpu
