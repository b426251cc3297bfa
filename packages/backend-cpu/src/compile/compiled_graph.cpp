#include "compile/compiled_graph.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compile/formulas.hpp"
#include "compile/loop_text.hpp"
#include "kernels.hpp"
#include "memory/nontemporal.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {

namespace {

std::atomic<TextCompiler> text_compiler{nullptr};

using Function = void (*)(void* const* addresses, int64_t n);
constexpr int64_t line_bytes = 64;
constexpr int64_t most_per_iteration = 64;  // elements
constexpr int most_addresses = 48;

struct CompiledGraph {
  Function function = nullptr;
  int64_t per_iteration = 0;
  // By input and by output: bytes from one element to the next.
  std::vector<int64_t> input_steps, output_steps;
  std::vector<std::array<std::byte, 8>> numbers;
  std::vector<bool> is_streamed;  // by output
  bool has_streams = false;
};

// The functions of this process by their text: programs with the same operators share one.
Function function_of(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Function> known;
  {
    const std::lock_guard lock(mutex);
    const auto found = known.find(text);
    if (found != known.end()) return found->second;
  }
  // Without the lock: the compiler takes Python's.
  const auto function = reinterpret_cast<Function>(text_compiler.load()(text.c_str(), loop_name));
  if (!function) throw failure(CB_RUNTIME_ERROR, "LLVM could not compile the operators");
  const std::lock_guard lock(mutex);
  return known.emplace(text, function).first->second;
}

bool is_streamed(const cb_tensor& output) {
  const auto bytes = output.numel * static_cast<int64_t>(cb_dtype_size(output.dtype));
  return bytes >= streaming_threshold() && output.offset % line_bytes == 0;
}

// The elements of a tile that are not a whole iteration are computed in memory of the stack.
void run_rest(const CompiledGraph& graph, void* const* addresses, int64_t begin, int64_t end) {
  alignas(line_bytes) std::byte padded[most_addresses][most_per_iteration * 8];
  const size_t inputs = graph.input_steps.size(), outputs = graph.output_steps.size();
  const size_t first_output = inputs + graph.numbers.size();
  for (int64_t at = begin; at < end; at += graph.per_iteration) {
    const auto count = static_cast<size_t>(std::min(graph.per_iteration, end - at));
    void* moved[most_addresses];
    std::copy_n(addresses, first_output + outputs, moved);
    for (size_t k = 0; k < inputs; ++k) {
      const auto step = static_cast<size_t>(graph.input_steps[k]);
      if (step == 0) continue;
      moved[k] = padded[k];
      std::memcpy(padded[k], static_cast<std::byte*>(addresses[k]) + static_cast<size_t>(at) * step, count * step);
      std::memset(padded[k] + count * step, 0, (static_cast<size_t>(graph.per_iteration) - count) * step);
    }
    for (size_t k = first_output; k < first_output + outputs; ++k) moved[k] = padded[k];
    graph.function(moved, graph.per_iteration);
    for (size_t k = 0; k < outputs; ++k) {
      const auto step = static_cast<size_t>(graph.output_steps[k]);
      std::memcpy(static_cast<std::byte*>(addresses[first_output + k]) + static_cast<size_t>(at) * step,
                  padded[first_output + k], count * step);
    }
  }
}

}  // namespace

int32_t claim_graph(const cb_graph* graph, uint8_t* claimed) {
  const bool may_compile = text_compiler.load() != nullptr;
  for (int k = 0; k < graph->node_count; ++k) claimed[k] = may_compile && is_compiled(graph->nodes[k], *graph);
  return CB_OK;
}

void* compile_graph(const cb_graph& graph) {
  auto compiled = std::make_unique<CompiledGraph>();
  for (int k = 0; k < graph.input_count; ++k) {
    const cb_tensor& input = graph.tensors[graph.inputs[k]];
    compiled->input_steps.push_back(input.strides[0] * static_cast<int64_t>(cb_dtype_size(input.dtype)));
  }
  for (int k = 0; k < graph.tensor_count; ++k) {
    const cb_tensor& tensor = graph.tensors[k];
    if (tensor.flags & CB_TENSOR_NUMBER)
      std::memcpy(compiled->numbers.emplace_back().data(), tensor.data, cb_dtype_size(tensor.dtype));
  }
  for (int k = 0; k < graph.output_count; ++k) {
    const cb_tensor& output = graph.tensors[graph.outputs[k]];
    compiled->output_steps.push_back(static_cast<int64_t>(cb_dtype_size(output.dtype)));
    compiled->is_streamed.push_back(is_streamed(output));
  }
  compiled->has_streams = std::ranges::count(compiled->is_streamed, true) > 0;
  if (compiled->input_steps.size() + compiled->numbers.size() + compiled->output_steps.size() > most_addresses)
    throw failure(CB_NOT_IMPLEMENTED, "more than %d tensors and numbers in one group", most_addresses);
  compiled->per_iteration = elements_per_iteration(graph);
  compiled->function = function_of(loop_text(graph, compiled->is_streamed));
  return compiled.release();
}

void execute_graph(void* handle, const cb_graph_run& run) {
  const auto& graph = *static_cast<const CompiledGraph*>(handle);
  void* addresses[most_addresses];
  void** address = addresses;
  for (size_t k = 0; k < graph.input_steps.size(); ++k) *address++ = const_cast<void*>(run.inputs[k]);
  for (const auto& number : graph.numbers) *address++ = const_cast<std::byte*>(number.data());
  bool is_aligned = true;
  for (size_t k = 0; k < graph.output_steps.size(); ++k) {
    *address++ = run.outputs[k];
    is_aligned = is_aligned && !(graph.is_streamed[k] && reinterpret_cast<uintptr_t>(run.outputs[k]) % line_bytes);
  }
  // Streaming stores need whole cache lines; without them, all elements go by the stack.
  const int64_t whole = is_aligned ? run.numel / graph.per_iteration * graph.per_iteration : 0;
  if (whole > 0) graph.function(addresses, whole);
  if (whole < run.numel) run_rest(graph, addresses, whole, run.numel);
  if (graph.has_streams) _mm_sfence();
}

void destroy_graph(void* compiled) {
  delete static_cast<CompiledGraph*>(compiled);
}

}  // namespace candelabra::cpu

// Called by candelabra_backend_cpu.llvm.
extern "C" CB_EXPORT void candelabra_cpu_set_text_compiler(candelabra::cpu::TextCompiler compiler);
extern "C" CB_EXPORT void candelabra_cpu_set_text_compiler(candelabra::cpu::TextCompiler compiler) {
  candelabra::cpu::text_compiler = compiler;
}
