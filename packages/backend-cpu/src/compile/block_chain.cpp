#include "compile/block_chain.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "compile/formulas.hpp"
#include "drivers/loop_capture.hpp"
#include "memory/copy_bytes.hpp"
#include "memory/nontemporal.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {

namespace {

std::span<const cb_kernel_entry> kernel_entries;

// Of a tensor in a block.
constexpr int64_t block_bytes = 4096;
// Larger inputs are not in a near cache: the next block of them is prefetched.
constexpr int64_t far_bytes = int64_t{1} << 20;
// Kernels are called with so many elements of memory, of which they compute none.
constexpr int64_t captured_numel = 512;
// Operands of widened dtypes: three of a loop, and its result.
constexpr int64_t wide_count = max_block_inputs + 1;
// Kernels that wait for one another lie on the stack.
constexpr int32_t most_nodes = 32;
constexpr size_t most_places = 64;  // of machine code
constexpr int64_t unit_stride = 1, no_stride = 0;

const cb_kernel_entry* kernel_of(const char* name) {
  const auto found = std::ranges::find(kernel_entries, std::string_view(name), &cb_kernel_entry::operator_name);
  return found == kernel_entries.end() || found->dtypes ? nullptr : &*found;
}

// Kernels of loops use no services of the core.
const cb_host no_services{};

// This thread's memory, which it keeps.
std::byte* block_memory(size_t bytes) {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static thread_local std::unique_ptr<std::byte, Free> memory;
  static thread_local size_t capacity = 0;
  if (bytes > capacity) {
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
    capacity = memory ? bytes : 0;
    if (!memory) throw failure(CB_OUT_OF_MEMORY, "no memory for blocks");
  }
  return memory.get();
}

// Memory that kernels are called with, of which they read at most single elements.
std::byte* captured_memory() {
  alignas(64) static thread_local std::byte memory[captured_numel * 8];
  return memory;
}

bool is_integer(int32_t dtype) {
  return dtype == CB_UINT8 || dtype == CB_INT8 || dtype == CB_INT16 || dtype == CB_INT32 || dtype == CB_INT64;
}

// Whether integers may make the kernel fail, as zeros do in a division.
bool may_fail(const cb_graph_node& node, const cb_graph& graph) {
  bool has_integers = is_integer(graph.tensors[node.output].dtype);
  for (int i = 0; i < node.argument_count; ++i)
    has_integers |= node.arguments[i].kind == CB_TENSOR && is_integer(node.arguments[i].as.tensor->dtype);
  return has_integers && !is_compiled(node, graph);
}

void prefetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(from + i, _MM_HINT_T0);
}

}  // namespace

void use_kernels_in_chains(std::span<const cb_kernel_entry> entries) {
  kernel_entries = entries;
}

// One run of a chain: the kernels are called one within the other, each up to its loop. Then all
// loops run on each block, and the kernels return.
class ChainRun final : public LoopCapture {
 public:
  ChainRun(const BlockChain& chain, const cb_graph_run* run) : chain_(chain), run_(run) {
    tensors_.reserve(chain.tensors_.size());
    for (const BlockChain::Tensor& tensor : chain.tensors_) describe(tensor);
    loops_.resize(chain.steps_.size());
    size_t values = 0;
    for (const BlockChain::Step& step : chain.steps_) values += step.values.size();
    values_.reserve(values);  // kernels have pointers into it
    before_ = std::exchange(loop_capture(), this);
  }
  ~ChainRun() { loop_capture() = before_; }
  ChainRun(const ChainRun&) = delete;
  ChainRun& operator=(const ChainRun&) = delete;

  void run() {
    next();
    if (status_ != CB_OK) throw failure(static_cast<cb_status>(status_), "%s", error_);
  }

  void captured(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count) override {
    // A kernel with a second loop, or on other tensors than its own.
    if (is_done_ || count > max_block_inputs || !take_loop(blocks, out, in, count)) return refuse();
    ++captured_;
    next();
  }

 private:
  // Where a loop finds an operand or puts its result.
  struct Place {
    std::byte* address = nullptr;
    int64_t step = 0;      // in bytes from block to block, by element
    int32_t widened = -1;  // the dtype to convert from or to
  };
  struct Loop {
    const Blocks* blocks = nullptr;  // of a kernel
    std::array<Place, max_block_inputs> in;
    int count = 0;
    Place out;
    const LoopGraph* code = nullptr;
    std::vector<Place> code_in, code_out;
  };

  void describe(const BlockChain::Tensor& tensor) {
    cb_tensor& made = tensors_.emplace_back(tensor.description);
    made.ndim = 1;
    made.numel = captured_numel;
    made.sizes = &numel_;
    made.strides = tensor.is_number || tensor.is_repeated ? &no_stride : &unit_stride;
    made.data = captured_memory();
    if (tensor.is_number) made.data = const_cast<std::byte*>(tensor.number.data());
    if (run_ && tensor.input >= 0 && tensor.is_repeated) made.data = const_cast<void*>(run_->inputs[tensor.input]);
  }

  // Goes on with the next kernel, within the call of the one before. After the last, computes.
  void next() {
    while (captured_ < chain_.steps_.size() && chain_.steps_[captured_].code) take_code();
    if (captured_ < chain_.steps_.size()) return call_kernel();
    if (run_) compute();
    is_done_ = true;
  }

  void take_code() {
    const BlockChain::Step& step = chain_.steps_[captured_];
    Loop& loop = loops_[captured_++];
    loop.code = step.code.get();
    for (const int number : step.inputs)
      loop.code_in.push_back(memory_place(chain_.tensors_[static_cast<size_t>(number)]));
    for (const int number : step.outputs)
      loop.code_out.push_back(memory_place(chain_.tensors_[static_cast<size_t>(number)]));
  }

  void call_kernel() {
    const BlockChain::Step& step = chain_.steps_[captured_];
    const size_t begin = values_.size();
    values_.insert(values_.end(), step.values.begin(), step.values.end());
    cb_value* const values = values_.data() + begin;
    for (const auto& [argument, tensor] : step.tensors)
      values[argument].as.tensor = &tensors_[static_cast<size_t>(tensor)];
    cb_call call{};
    call.size = sizeof(cb_call);
    call.host = &no_services;
    call.operator_name = step.name.c_str();
    call.output_count = 1;
    call.argument_count = static_cast<int32_t>(step.values.size());
    call.outputs = &tensors_[static_cast<size_t>(step.outputs.front())];
    call.arguments = values;
    call.error = error_;
    call.error_capacity = sizeof error_;
    const size_t before = captured_;
    const int32_t status = step.kernel(&call);
    if (status != CB_OK && status_ == CB_OK) status_ = status;
    if (captured_ == before) refuse();
  }

  void refuse() {
    if (status_ == CB_OK) status_ = CB_NOT_IMPLEMENTED;
  }

  bool take_loop(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count) {
    Loop& loop = loops_[captured_];
    loop.blocks = &blocks;
    loop.count = count;
    if (&out != &tensors_[static_cast<size_t>(chain_.steps_[captured_].outputs.front())]) return false;
    for (int k = 0; k < count; ++k) {
      const auto number = in[k] - tensors_.data();
      const bool is_own = number >= 0 && number < static_cast<int64_t>(tensors_.size());
      const bool is_constant = (in[k]->flags & CB_TENSOR_NUMBER) || in[k]->ndim == 0 || in[k]->strides[0] == 0;
      if (!is_own && !is_constant) return false;
      if (run_) loop.in[static_cast<size_t>(k)] = place_of(*in[k], is_constant, blocks.halves_as_float);
    }
    if (run_) loop.out = place_of(out, false, blocks.halves_as_float);
    return true;
  }

  std::byte* take_memory() {
    std::byte* const result = block_memory(memory_bytes()) + memory_used_ * slot_bytes;
    ++memory_used_;
    return result;
  }
  // Slots, what is repeated in three operands of each node, and what is widened.
  size_t memory_bytes() const {
    return (static_cast<size_t>(chain_.slot_count_) + loops_.size() * max_block_inputs + wide_count) * slot_bytes;
  }

  Place place_of(const cb_tensor& tensor, bool is_constant, bool widens) {
    const int32_t widened = widens && is_widened_dtype(tensor.dtype) ? tensor.dtype : -1;
    if (is_constant) return {repeated(tensor, widened), 0, -1};
    Place place = memory_place(chain_.tensors_[static_cast<size_t>(&tensor - tensors_.data())]);
    place.widened = widened;
    return place;
  }
  Place memory_place(const BlockChain::Tensor& tensor) const {
    if (tensor.input < 0) return {slot(tensor.slot), 0, -1};
    auto* const address = static_cast<std::byte*>(const_cast<void*>(run_->inputs[tensor.input]));
    return {address, tensor.is_repeated ? 0 : tensor.itemsize, -1};
  }

  std::byte* slot(int number) const { return block_memory(memory_bytes()) + static_cast<size_t>(number) * slot_bytes; }

  // A block of one element, as the loop gets it. Equal ones are one.
  std::byte* repeated(const cb_tensor& tensor, int32_t widened) {
    const void* element = tensor.data;
    const int64_t itemsize = static_cast<int64_t>(cb_dtype_size(widened < 0 ? tensor.dtype : CB_FLOAT32));
    float wide = 0;
    if (widened >= 0) {
      widen(widened, element, &wide, 1);
      element = &wide;
    }
    Repeated wanted{};
    wanted.itemsize = itemsize;
    std::memcpy(wanted.element.data(), element, static_cast<size_t>(itemsize));
    for (const Repeated& one : repeated_)
      if (one.itemsize == itemsize && one.element == wanted.element) return one.address;
    if (memory_used_ == 0) memory_used_ = static_cast<size_t>(chain_.slot_count_) + wide_count;
    wanted.address = take_memory();
    repeat_element(wanted.address, element, itemsize, chain_.block_);
    repeated_.push_back(wanted);
    return wanted.address;
  }

  void compute() {
    wide_ = slot(chain_.slot_count_);
    std::vector<const BlockChain::Tensor*> inputs, outputs;
    for (const BlockChain::Tensor& tensor : chain_.tensors_) {
      const bool is_far = tensor.description.numel * tensor.itemsize >= far_bytes;
      if (tensor.input >= 0 && !tensor.is_repeated && is_far) inputs.push_back(&tensor);
      if (tensor.output >= 0) outputs.push_back(&tensor);
    }
    write_last_directly(outputs);
    bool is_streamed = false;
    for (int64_t begin = 0; begin < run_->numel; begin += chain_.block_) {
      const int64_t count = std::min(chain_.block_, run_->numel - begin);
      for (const BlockChain::Tensor* input : inputs)
        prefetch(static_cast<const std::byte*>(run_->inputs[input->input]) + (begin + count) * input->itemsize,
                 count * input->itemsize);
      for (const Loop& loop : loops_) run_loop(loop, begin, count);
      for (const BlockChain::Tensor* output : outputs) is_streamed |= store(*output, begin, count);
    }
    if (is_streamed) _mm_sfence();
  }

  // The result of the last step is written where it belongs: nothing is read after it.
  void write_last_directly(std::vector<const BlockChain::Tensor*>& outputs) {
    const std::vector<int>& made = chain_.steps_.back().outputs;
    const BlockChain::Tensor& last = chain_.tensors_[static_cast<size_t>(made.back())];
    if (made.size() > 1 || last.output < 0 || last.is_streamed) return;
    Loop& loop = loops_.back();
    Place& place = loop.code ? loop.code_out.front() : loop.out;
    place.address = static_cast<std::byte*>(run_->outputs[last.output]);
    place.step = last.itemsize;
    std::erase(outputs, &last);
  }

  void run_loop(const Loop& loop, int64_t begin, int64_t count) const {
    if (loop.code) return run_code(loop, begin, count);
    const void* in[max_block_inputs];
    for (int k = 0; k < loop.count; ++k) {
      const Place& place = loop.in[static_cast<size_t>(k)];
      in[k] = place.address + begin * place.step;
      if (place.widened < 0) continue;
      std::byte* const wide = wide_ + static_cast<size_t>(k) * slot_bytes;
      widen(place.widened, in[k], wide, count);
      in[k] = wide;
    }
    const Place& out = loop.out;
    std::byte* const to = out.address + begin * out.step;
    if (out.widened < 0) return loop.blocks->loop(to, in, count, loop.blocks->context);
    std::byte* const wide = wide_ + max_block_inputs * slot_bytes;
    loop.blocks->loop(wide, in, count, loop.blocks->context);
    narrow(out.widened, wide, to, count);
  }

  void run_code(const Loop& loop, int64_t begin, int64_t count) const {
    std::array<const void*, most_places> inputs;
    std::array<void*, most_places> outputs;
    const auto address = [&](const Place& place) { return place.address + begin * place.step; };
    std::ranges::transform(loop.code_in, inputs.begin(), address);
    std::ranges::transform(loop.code_out, outputs.begin(), address);
    loop.code->run({sizeof(cb_graph_run), count, inputs.data(), outputs.data()});
  }

  // Returns whether by streaming stores.
  bool store(const BlockChain::Tensor& output, int64_t begin, int64_t count) const {
    std::byte* const to = static_cast<std::byte*>(run_->outputs[output.output]) + begin * output.itemsize;
    const std::byte* const from = slot(output.slot);
    const int64_t bytes = count * output.itemsize;
    const bool streams = output.is_streamed && reinterpret_cast<uintptr_t>(to) % 64 == 0;
    const int64_t lines = streams ? bytes & ~int64_t{63} : 0;
    if (lines > 0) stream_lines(to, from, lines);
    std::memcpy(to + lines, from + lines, static_cast<size_t>(bytes - lines));
    return lines > 0;
  }

  // Of a block in any dtype that loops get.
  // Not a power of two: memory at the same distances would share the sets of the first cache.
  static constexpr size_t slot_bytes = static_cast<size_t>(block_bytes) + 192;

  struct Repeated {
    std::array<std::byte, 8> element;
    int64_t itemsize;
    std::byte* address;
  };

  const BlockChain& chain_;
  const cb_graph_run* run_;  // null: the kernels are only asked for their loops
  LoopCapture* before_ = nullptr;
  int64_t numel_ = captured_numel;
  std::vector<cb_tensor> tensors_;
  std::vector<cb_value> values_;
  std::vector<Loop> loops_;
  std::vector<Repeated> repeated_;
  size_t captured_ = 0, memory_used_ = 0;
  bool is_done_ = false;
  std::byte* wide_ = nullptr;
  int32_t status_ = CB_OK;
  char error_[512] = {};
};

BlockChain::BlockChain(const cb_graph& graph, const std::vector<bool>& is_code, const CodeSource& source) {
  if (graph.node_count > most_nodes)
    throw failure(CB_NOT_IMPLEMENTED, "more than %d operators in one group", most_nodes);
  for (int k = 0; k < graph.tensor_count; ++k) add_tensor(graph.tensors[k]);
  for (int k = 0; k < graph.input_count; ++k) tensors_[static_cast<size_t>(graph.inputs[k])].input = k;
  for (int k = 0; k < graph.output_count; ++k) {
    Tensor& output = tensors_[static_cast<size_t>(graph.outputs[k])];
    output.output = k;
    output.is_streamed = output.description.numel * output.itemsize >= streaming_threshold();
  }
  int64_t widest = 4;
  for (const Tensor& tensor : tensors_) widest = std::max(widest, tensor.itemsize);
  block_ = block_bytes / widest;
  for (int k = 0, end = 0; k < graph.node_count; k = end) {
    for (end = k; end < graph.node_count && is_code[static_cast<size_t>(end)];) ++end;
    if (end > k + 1) {
      add_code(graph, k, end, source);
    } else {
      add_kernel(graph.nodes[k], graph);
      end = k + 1;
    }
  }
  place();
}

void BlockChain::add_tensor(const cb_tensor& tensor) {
  Tensor& made = tensors_.emplace_back();
  made.description = tensor;
  made.itemsize = static_cast<int64_t>(cb_dtype_size(tensor.dtype));
  if (made.itemsize > 8) throw failure(CB_NOT_IMPLEMENTED, "elements of more than 8 bytes");
  made.is_number = tensor.flags & CB_TENSOR_NUMBER;
  if (made.is_number) {
    std::memcpy(made.number.data(), tensor.data, static_cast<size_t>(made.itemsize));
  } else {
    made.is_repeated = tensor.strides[0] == 0;
  }
}

void BlockChain::add_kernel(const cb_graph_node& node, const cb_graph& graph) {
  const cb_kernel_entry* const entry = kernel_of(node.operator_name);
  if (!entry) throw failure(CB_NOT_IMPLEMENTED, "%s is no loop", node.operator_name);
  Step& made = steps_.emplace_back();
  made.kernel = entry->kernel;
  made.name = node.operator_name;
  made.values.assign(node.arguments, node.arguments + node.argument_count);
  made.outputs = {node.output};
  for (int i = 0; i < node.argument_count; ++i) {
    cb_value& value = made.values[static_cast<size_t>(i)];
    switch (value.kind) {
      case CB_TENSOR:
        made.tensors.emplace_back(i, static_cast<int>(value.as.tensor - graph.tensors));
        made.inputs.push_back(made.tensors.back().second);
        break;
      case CB_SCALAR:
        value.as.scalar = &scalars_.emplace_back(*value.as.scalar);
        break;
      case CB_STRING:
        value.as.string = strings_.emplace_back(value.as.string).c_str();
        break;
      case CB_NONE:
      case CB_INT:
      case CB_FLOAT:
        break;
      default:
        throw failure(CB_NOT_IMPLEMENTED, "%s takes lists", node.operator_name);
    }
  }
}

// Nodes [begin, end) as a graph of its own, whose memory is that of blocks.
void BlockChain::add_code(const cb_graph& graph, int begin, int end, const CodeSource& source) {
  Step& step = steps_.emplace_back();
  std::vector<cb_tensor> tensors(graph.tensors, graph.tensors + graph.tensor_count);
  for (cb_tensor& tensor : tensors)
    if (!(tensor.flags & CB_TENSOR_NUMBER)) tensor.numel = block_, tensor.offset = 0;
  std::vector<cb_graph_node> nodes(graph.nodes + begin, graph.nodes + end);
  std::vector<std::vector<cb_value>> values;
  std::vector<bool> is_made(tensors.size());
  for (cb_graph_node& node : nodes) {
    std::vector<cb_value>& own = values.emplace_back(node.arguments, node.arguments + node.argument_count);
    for (cb_value& value : own) {
      if (value.kind != CB_TENSOR) continue;
      const auto number = static_cast<size_t>(value.as.tensor - graph.tensors);
      value.as.tensor = &tensors[number];
      const bool is_known = is_made[number] || std::ranges::count(step.inputs, static_cast<int>(number)) > 0;
      if (!is_known && !tensors_[number].is_number) step.inputs.push_back(static_cast<int>(number));
    }
    node.arguments = own.data();
    is_made[static_cast<size_t>(node.output)] = true;
  }
  const auto is_read_later = [&](int tensor) {
    return std::any_of(graph.nodes + end, graph.nodes + graph.node_count, [&](const cb_graph_node& node) {
      return std::any_of(node.arguments, node.arguments + node.argument_count, [&](const cb_value& value) {
        return value.kind == CB_TENSOR && value.as.tensor == graph.tensors + tensor;
      });
    });
  };
  for (const cb_graph_node& node : nodes)
    if (tensors_[static_cast<size_t>(node.output)].output >= 0 || is_read_later(node.output))
      step.outputs.push_back(node.output);
  if (step.inputs.size() > most_places || step.outputs.size() > most_places)
    throw failure(CB_NOT_IMPLEMENTED, "too many tensors in one group");
  cb_graph part = graph;
  part.tensors = tensors.data();
  part.nodes = nodes.data();
  part.node_count = end - begin;
  part.inputs = step.inputs.data();
  part.input_count = static_cast<int32_t>(step.inputs.size());
  part.outputs = step.outputs.data();
  part.output_count = static_cast<int32_t>(step.outputs.size());
  step.code = std::make_unique<LoopGraph>(part, source);
}

// Gives computed tensors slots, which they share where their lives do not overlap. Outputs are
// stored when all steps have run.
void BlockChain::place() {
  struct Slot {
    int64_t itemsize;
    int last;  // the step that uses it last
  };
  const int count = static_cast<int>(steps_.size());
  const auto last_use = [&](int tensor) {
    if (tensors_[static_cast<size_t>(tensor)].output >= 0) return count;
    int last = -1;
    for (int k = 0; k < count; ++k)
      if (std::ranges::count(steps_[static_cast<size_t>(k)].inputs, tensor) > 0) last = k;
    return last;
  };
  std::vector<Slot> slots;
  for (int k = 0; k < count; ++k) {
    for (const int made : steps_[static_cast<size_t>(k)].outputs) {
      Tensor& tensor = tensors_[static_cast<size_t>(made)];
      // A step may write where it reads, element by element.
      auto slot = std::ranges::find_if(
          slots, [&](const Slot& one) { return one.last < k || (one.last == k && one.itemsize == tensor.itemsize); });
      if (slot == slots.end()) slot = slots.insert(slot, Slot{});
      *slot = {tensor.itemsize, std::max(k + 1, last_use(made))};
      tensor.slot = static_cast<int>(slot - slots.begin());
    }
  }
  slot_count_ = static_cast<int>(slots.size());
}

void BlockChain::add_codes(std::vector<const LoopCode*>& codes) const {
  for (const Step& step : steps_)
    if (step.code) step.code->add_codes(codes);
}

void BlockChain::run(const cb_graph_run& run) const {
  ChainRun(*this, &run).run();
}

bool BlockChain::accepts(const cb_graph_node& node, const cb_graph& graph) {
  if (!kernel_of(node.operator_name) || may_fail(node, graph)) return false;
  cb_graph alone = graph;
  alone.nodes = &node;
  alone.node_count = 1;
  alone.input_count = alone.output_count = 0;
  try {
    const BlockChain chain(alone, {false}, {});
    ChainRun(chain, nullptr).run();
    return true;
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace candelabra::cpu
