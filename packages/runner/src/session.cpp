#include "session.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "checked.hpp"
#include "failure.hpp"
#include "operand_guard.hpp"

namespace candelabra::runner {

namespace {

constexpr uintptr_t alignment = 64;
constexpr size_t message_capacity = 2048;
constexpr size_t largest_description = size_t{1} << 28;

// Versions of contents begin where those of a core in the same process, which count from 1, do not
// arrive.
uint64_t next_version() {
  static std::atomic<uint64_t> last{uint64_t{1} << 62};
  return ++last;
}

cr_tensor shown(const Described& one) {
  return {nullptr, one.sizes.data(), static_cast<int32_t>(one.sizes.size()), one.dtype, one.name.c_str(), one.bytes};
}

std::string text_of(std::span<const cr_tensor> tensors) {
  std::string made;
  for (const cr_tensor& one : tensors)
    made += (made.empty() ? "" : ", ") + shape_text(one.dtype, {one.sizes, static_cast<size_t>(std::max(one.ndim, 0))});
  return made.empty() ? "no arguments" : made;
}

bool fits(const Described& expected, const cr_tensor& given) {
  return given.dtype == expected.dtype && given.ndim == static_cast<int32_t>(expected.sizes.size()) &&
         std::equal(expected.sizes.begin(), expected.sizes.end(), given.sizes);
}

// Kernels rely on bools that are 0 or 1.
void check_bools(const Described& expected, const cr_tensor& given) {
  if (expected.dtype == CB_BOOL && !are_bools({static_cast<const std::byte*>(given.data), expected.bytes}))
    fail(CR_INPUT_ERROR, "argument ", expected.name, " has bools that are neither 0 nor 1");
}

}  // namespace

Session::Session(const std::string& path, const cr_options& options) : archive_(path), message_(message_capacity) {
  const std::string_view text = archive_.verified_text("description.json");
  require(text.size() <= largest_description, "its description is too large: ", text.size(), " bytes");
  const Json description = Json::parse(text);
  backend_ = &Backend::load(device_of(description), options.backend ? options.backend : "");
  if (options.threads > 0) backend_->set_thread_count(options.threads);
  read_programs(description, archive_, *backend_, programs_);
  for (Stored& stored : programs_.stored) stored.version = stored.is_changed ? 0 : next_version();
  uint64_t most = 0;
  for (const Program& program : programs_.programs) {
    most = std::max(most, program.arena_bytes);
    Interface& made = interfaces_.emplace_back();
    std::ranges::transform(program.inputs, std::back_inserter(made.inputs), shown);
    std::ranges::transform(program.outputs, std::back_inserter(made.outputs), shown);
  }
  arena_ = Memory(*backend_, most);
  if (reinterpret_cast<uintptr_t>(arena_.address()) % alignment != 0)
    fail(CR_BACKEND_ERROR, backend_->path(), " allocates memory at addresses that are no multiples of 64");
  frame_.backend = backend_;
  memory_.emplace_back(arena_.address(), most);
  for (const Stored& stored : programs_.stored) memory_.push_back(stored.bytes);
}

cr_signature Session::signature(size_t index) const {
  const Interface& found = interfaces_[index];
  return {found.inputs.data(), found.outputs.data(), static_cast<int32_t>(found.inputs.size()),
          static_cast<int32_t>(found.outputs.size())};
}

size_t Session::find(std::span<const cr_tensor> inputs) const {
  for (const cr_tensor& one : inputs)
    if (one.ndim < 0 || (one.ndim > 0 && !one.sizes)) fail(CR_INPUT_ERROR, "an argument has no sizes");
  for (size_t k = 0; k < programs_.programs.size(); ++k) {
    const std::vector<Described>& expected = programs_.programs[k].inputs;
    if (std::equal(expected.begin(), expected.end(), inputs.begin(), inputs.end(), fits)) return k;
  }
  std::string known;
  for (const Interface& one : interfaces_) known += "\n  " + text_of(one.inputs);
  fail(CR_INPUT_ERROR, "no program in the file takes ", text_of(inputs), "; there are programs for", known);
}

void Session::take_inputs(const Program& program, std::span<const cr_tensor> inputs) {
  inputs_.clear();
  copied_.clear();
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Described& expected = program.inputs[k];
    const auto* const data = static_cast<const std::byte*>(inputs[k].data);
    if (!data && expected.bytes > 0) fail(CR_INPUT_ERROR, "argument ", expected.name, " has no memory");
    check_bools(expected, inputs[k]);
    if (reinterpret_cast<uintptr_t>(data) % alignment == 0 && !expected.is_result) {
      inputs_.push_back(data);
      continue;
    }
    const Memory& copy = copied_.emplace_back(*backend_, expected.bytes);
    std::memcpy(copy.address(), data, expected.bytes);
    inputs_.push_back(copy.address());
  }
}

std::byte* Session::base_of(const Buffer& buffer) const {
  switch (buffer.kind) {
    case Buffer::Kind::Arena:
      return arena_.address() + buffer.place;
    case Buffer::Kind::Input:
      // The reader has refused programs that write to an argument.
      return const_cast<std::byte*>(inputs_[buffer.place]);
    default:
      return programs_.stored[buffer.place].bytes.data();
  }
}

void Session::execute_kernel(const Program& program, Call& call) {
  const Kernel& kernel = programs_.kernels[static_cast<size_t>(call.kernel)];
  const OperandGuard guard(memory_);
  for (const Operand& operand : call.operands) {
    std::byte* const base = base_of(program.buffers[static_cast<size_t>(operand.buffer)]);
    std::byte* const data = base ? base + operand.offset : nullptr;
    guard.allow(data, operand.bytes);
    if (operand.needs_bool_check && !are_bools({data, operand.bytes}))
      fail(CR_KERNEL_ERROR, kernel.name, "(): an argument has bools that are neither 0 nor 1");
    operand.tensor->data = data;
    operand.tensor->offset = operand.offset;
    operand.tensor->memory_kind = CB_MEMORY_IMPORTED;
  }
  std::vector<uint64_t> versions;
  if (kernel.entry->flags & CB_KERNEL_READS_VERSIONS) {
    for (const int number : call.argument_buffers) {
      const Buffer* const buffer = number < 0 ? nullptr : &program.buffers[static_cast<size_t>(number)];
      versions.push_back(buffer && buffer->kind == Buffer::Kind::Stored ? programs_.stored[buffer->place].version : 0);
    }
  }
  frame_.call = {};
  cb_call& raw = frame_.call;
  raw.size = sizeof raw;
  raw.host = &host_services();
  raw.backend = &backend_->table();
  raw.operator_name = kernel.name.c_str();
  raw.output_count = static_cast<int32_t>(call.outputs.size());
  raw.argument_count = static_cast<int32_t>(call.arguments.size());
  raw.outputs = call.outputs.data();
  raw.arguments = call.arguments.data();
  raw.error = message_.data();
  raw.error_capacity = message_.size();
  raw.content_versions = versions.empty() ? nullptr : versions.data();
  message_[0] = 0;
  backend_->call(kernel.entry->kernel, raw);
  frame_.workspaces.clear();
}

void Session::execute(const Program& program, Call& call) {
  for (const int number : call.zeroed) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(number)];
    std::memset(base_of(buffer), 0, buffer.bytes);
  }
  if (call.kind == Call::Kind::Kernel) return execute_kernel(program, call);
  std::byte* const to = base_of(program.buffers[static_cast<size_t>(call.to.buffer)]) + call.to.offset;
  if (call.kind == Call::Kind::Copy) {
    std::memmove(to, base_of(program.buffers[static_cast<size_t>(call.from.buffer)]) + call.from.offset, call.bytes);
    return;
  }
  for (uint64_t done = 0; done < call.bytes; done += sizeof call.pattern)
    std::memcpy(to + done, call.pattern, std::min<uint64_t>(sizeof call.pattern, call.bytes - done));
}

std::span<const cr_tensor> Session::run(std::span<const cr_tensor> inputs) {
  const size_t index = find(inputs);
  Program& program = programs_.programs[index];
  take_inputs(program, inputs);
  frame_.workspaces.clear();
  for (Call& call : program.calls) execute(program, call);
  std::vector<cr_tensor>& outputs = interfaces_[index].outputs;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Described& output = program.outputs[k];
    std::byte* const base =
        output.buffer < 0 ? arena_.address() : base_of(program.buffers[static_cast<size_t>(output.buffer)]);
    outputs[k].data = base + output.offset;
  }
  return outputs;
}

}  // namespace candelabra::runner
