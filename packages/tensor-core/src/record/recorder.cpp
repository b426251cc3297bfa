#include "record/recorder.hpp"

#include <frameobject.h>

#include <bit>

namespace candelabra {

std::atomic<int> active_recorders{0};

namespace {

thread_local Recorder* current = nullptr;
// Larger constants are refused: a program keeps a copy.
constexpr size_t constant_limit = size_t{1} << 20;

uint32_t next_serial() {
  static uint32_t last = 0;
  return ++last == 0 ? ++last : last;
}

int64_t itemsize_of(const cb_tensor& tensor) {
  return itemsize(static_cast<Dtype>(tensor.dtype));
}

// Bytes from element 0 to the end of the last element.
int64_t extent_of(const cb_tensor& tensor) {
  if (tensor.numel == 0) return 0;
  int64_t last = 0;
  for (int d = 0; d < tensor.ndim; ++d) last += (tensor.sizes[d] - 1) * tensor.strides[d];
  return (last + 1) * itemsize_of(tensor);
}

}  // namespace

Recorder* thread_recorder() {
  return current;
}

void refuse_active_recording(const char* reason) {
  if (current) current->refuse(reason);
}

void note_active_host_write(Storage& storage) {
  if (current) current->note_host_write(storage);
}

NoRecording::NoRecording() : before_(recorder()) {
  if (before_) current = nullptr;
}
NoRecording::~NoRecording() {
  if (before_) current = before_;
}

Recorder::Recorder() : serial_(next_serial()) {}

Recorder::~Recorder() {
  if (is_active_) stop();
}

void Recorder::start() {
  check(!current, PyExc_RuntimeError, "this thread records already");
  current = this;
  is_active_ = true;
  ++active_recorders;
}

// A constant is read before any instruction uses its buffer, because kernels may write to it.
static void take_constant(Recorder& recorder, RecordedBuffer& buffer, const Storage& root) {
  if (!buffer.has_constant || buffer.first >= 0) return;
  if (root.bytes > constant_limit || !root.is_host_visible) {
    recorder.refuse("a tensor is made from values of the host; make it outside the function");
    return;
  }
  const auto* begin = static_cast<const std::byte*>(root.data);
  buffer.constant.assign(begin, begin + root.bytes);
}

void Recorder::stop() {
  if (!is_active_) return;
  // A tensor of the host's values that no instruction uses may be a result.
  for (RecordedBuffer& buffer : buffers)
    if (buffer.made && !buffer.is_freed) take_constant(*this, buffer, *buffer.made);
  is_active_ = false;
  if (current == this) current = nullptr;
  --active_recorders;
}

void Recorder::refuse(const std::string& reason) {
  if (is_refused()) return;
  reason_ = reason;
  find_program_line(reason_file_, reason_line_);
}

int Recorder::new_buffer(size_t bytes) {
  buffers.emplace_back().bytes = bytes;
  return static_cast<int>(buffers.size()) - 1;
}

void Recorder::note_new(Storage& storage) {
  storage.recording = serial_;
  // It gets a number at its first use: kernels ask for workspaces in some calls only.
  storage.recorded_buffer = -1;
}

void Recorder::note_freed(const Storage& storage) {
  if (storage.recording == serial_ && storage.recorded_buffer >= 0)
    buffers[static_cast<size_t>(storage.recorded_buffer)].is_freed = true;
}

int Recorder::find(Storage* storage) const {
  Storage* root = root_storage(storage);
  if (root->recording == serial_) return root->recorded_buffer;
  const auto place = existing_.find(root);
  return place == existing_.end() ? -1 : place->second;
}

int Recorder::find_existing(Storage* root) const {
  const auto place = existing_.find(root);
  return place == existing_.end() ? -1 : place->second;
}

void Recorder::note_extent(int number, const TensorObject& view) {
  RecordedBuffer& buffer = buffers[static_cast<size_t>(number)];
  const cb_tensor seen = describe(view);
  if (seen.numel == 0) return;
  const int64_t offset = view.offset * itemsize(view.dtype);
  buffer.low = std::min(buffer.low, offset);
  buffer.high = std::max(buffer.high, offset + extent_of(seen));
}

void Recorder::forget_existing(int number) {
  RecordedBuffer& buffer = buffers[static_cast<size_t>(number)];
  existing_.erase(buffer.existing.get());
  buffer.existing.reset();
}

int Recorder::buffer_of(Storage* storage) {
  const int known = find(storage);
  if (known >= 0) return known;
  Storage* root = root_storage(storage);
  const int made = new_buffer(root->bytes);
  if (root->recording == serial_) {
    buffers.back().made = root;
    return root->recorded_buffer = made;
  }
  RecordedBuffer& buffer = buffers.back();
  buffer.is_existing = true;
  buffer.existing = shared(root);
  buffer.version = root->version;
  existing_.emplace(root, made);
  return made;
}

void Recorder::note_host_write(Storage& storage) {
  const int buffer = buffer_of(&storage);
  if (buffers[static_cast<size_t>(buffer)].is_existing || buffers[static_cast<size_t>(buffer)].first >= 0) {
    refuse("the host writes to the memory of a tensor");
    return;
  }
  buffers[static_cast<size_t>(buffer)].has_constant = true;
}

void Recorder::use(Instruction& instruction, int number, cb_tensor* tensor, int64_t offset, bool is_written) {
  RecordedBuffer& buffer = buffers[static_cast<size_t>(number)];
  instruction.operands.push_back({tensor, number, offset});
  const int at = static_cast<int>(instructions.size());
  if (buffer.first < 0) buffer.first = at;
  buffer.last = at;
  if (tensor && tensor->numel > 0) {
    buffer.low = std::min(buffer.low, offset);
    buffer.high = std::max(buffer.high, offset + extent_of(*tensor));
  }
  if (!is_written) return;
  buffer.is_written = true;
  instruction.written.push_back(number);
}

cb_tensor* Recorder::copy_descriptor(const cb_tensor& seen) {
  cb_tensor* tensor = pool.copy(&seen, 1);
  tensor->sizes = pool.copy(seen.sizes, static_cast<size_t>(seen.ndim));
  tensor->strides = pool.copy(seen.strides, static_cast<size_t>(seen.ndim));
  return tensor;
}

void Recorder::note_tensor(Instruction& instruction, cb_tensor* tensor, Storage* storage, bool is_written) {
  Storage* root = root_storage(storage);
  const int number = buffer_of(storage);
  take_constant(*this, buffers[static_cast<size_t>(number)], *root);
  const int64_t offset = root->is_addressable && tensor->data
                             ? static_cast<const char*>(tensor->data) - static_cast<const char*>(root->data)
                             : static_cast<int64_t>(tensor->offset);
  use(instruction, number, tensor, offset, is_written);
}

void Recorder::note_value(Instruction& instruction, const Call& call, int i, const cb_value& seen) {
  const Argument& argument = call.arguments[static_cast<size_t>(i)];
  const bool is_written = call.op.schema.parameters[static_cast<size_t>(i)].mutated;
  cb_value& value = instruction.values[i];
  value = seen;
  const auto count = static_cast<size_t>(seen.count);
  switch (seen.kind) {
    case CB_TENSOR: {
      cb_tensor* tensor = copy_descriptor(*seen.as.tensor);
      value.as.tensor = tensor;
      if (argument.is_tensor()) {
        note_tensor(instruction, tensor, argument.tensor->storage, is_written);
        instruction.value_buffers[static_cast<size_t>(i)] = instruction.operands.back().buffer;
      } else {
        tensor->data = pool.copy(static_cast<const std::byte*>(seen.as.tensor->data),
                                 static_cast<size_t>(itemsize_of(*seen.as.tensor)));
      }
      break;
    }
    case CB_TENSORS: {
      const cb_tensor** list = pool.make<const cb_tensor*>(count);
      for (int32_t k = 0; k < seen.count; ++k) {
        list[k] = nullptr;
        if (!seen.as.tensors[k]) continue;
        cb_tensor* tensor = copy_descriptor(*seen.as.tensors[k]);
        note_tensor(instruction, tensor, argument.tensors[k]->storage, is_written);
        list[k] = tensor;
      }
      value.as.tensors = list;
      break;
    }
    case CB_SCALAR:
      value.as.scalar = pool.copy(seen.as.scalar, 1);
      break;
    case CB_INTS:
      value.as.ints = pool.copy(seen.as.ints, count);
      break;
    case CB_FLOATS:
      value.as.floats = pool.copy(seen.as.floats, count);
      break;
    case CB_STRING:
      value.as.string = pool.copy(seen.as.string, std::strlen(seen.as.string) + 1);
      break;
    default:
      break;
  }
}

void Recorder::note_output(Instruction& instruction, const Output& output, cb_tensor* tensor) {
  if (output.tensor) return note_tensor(instruction, tensor, output.tensor->storage, true);
  if (!output.scratch) {
    refuse("the kernel chooses whether it gives a result");
    return;
  }
  const int scratch = new_buffer(static_cast<size_t>(tensor->numel * itemsize_of(*tensor)));
  buffers.back().is_scratch = true;
  use(instruction, scratch, tensor, 0, true);
}

void Recorder::note_kernel(Call& call, const Kernel& kernel, const cb_call& seen, bool is_unlocked) {
  if (is_refused()) return;
  const char* const name = call.name();
  if (call.op.tags & tag_data_dependent) return refuse(text("the shape of the result of ", name, "() depends on data"));
  Instruction instruction;
  instruction.op = &call.op;
  instruction.kernel = kernel;
  instruction.device = call.device;
  instruction.is_unlocked = is_unlocked;
  instruction.value_count = seen.argument_count;
  instruction.values = pool.make<cb_value>(static_cast<size_t>(seen.argument_count));
  instruction.value_buffers.assign(static_cast<size_t>(seen.argument_count), -1);
  instruction.output_count = seen.output_count;
  instruction.outputs = pool.make<cb_tensor>(static_cast<size_t>(seen.output_count));
  // An in-place operator that reads nothing of self does not use what self held.
  if ((call.op.tags & tag_overwrites) && call.arguments[0].is_tensor()) {
    const Storage* root = root_storage(call.arguments[0].tensor->storage);
    const int buffer = find(call.arguments[0].tensor->storage);
    const bool covers = call.arguments[0].tensor->numel * itemsize(call.arguments[0].tensor->dtype) ==
                        static_cast<int64_t>(root->bytes);
    if (buffer >= 0 && covers && buffers[static_cast<size_t>(buffer)].first < 0)
      buffers[static_cast<size_t>(buffer)].has_constant = false;
  }
  for (int i = 0; i < seen.argument_count; ++i) note_value(instruction, call, i, seen.arguments[i]);
  for (int k = 0; k < seen.output_count; ++k) {
    cb_tensor& tensor = instruction.outputs[k] = seen.outputs[k];
    tensor.sizes = pool.copy(tensor.sizes, static_cast<size_t>(tensor.ndim));
    tensor.strides = pool.copy(tensor.strides, static_cast<size_t>(tensor.ndim));
    note_output(instruction, call.outputs[static_cast<size_t>(k)], &tensor);
  }
  if (call.op.tags & tag_random) {
    instruction.is_random = true;
    const int64_t count = call.output_count > 0 ? std::max<int64_t>(product(call.outputs[0].sizes), 1) : 1;
    instruction.random_blocks = static_cast<uint64_t>(count + 1) / 2;
    if (call.generator && call.generator != Py_None) instruction.generator = Ref<>::borrow(call.generator);
  }
  add(std::move(instruction));
}

void Recorder::add(Instruction instruction) {
  find_program_line(instruction.file, instruction.line);
  instructions.push_back(std::move(instruction));
}

void Recorder::forget_kernel() {
  if (!is_refused()) instructions.pop_back();
}

void Recorder::note_copy(const TensorObject& destination, const TensorObject& source, size_t bytes) {
  if (is_refused()) return;
  if (destination.device() != source.device()) return refuse("a tensor is copied to another device");
  Instruction instruction;
  instruction.kind = Instruction::Kind::Copy;
  instruction.device = destination.device();
  instruction.bytes = bytes;
  cb_tensor* to = copy_descriptor(describe(destination));
  cb_tensor* from = copy_descriptor(describe(source));
  // All of a new destination is written, or the rest was never set.
  note_tensor(instruction, to, destination.storage, true);
  note_tensor(instruction, from, source.storage, false);
  add(std::move(instruction));
}

void Recorder::note_fill(const TensorObject& destination, const uint64_t (&pattern)[2], size_t bytes) {
  if (is_refused()) return;
  Instruction instruction;
  instruction.kind = Instruction::Kind::Fill;
  instruction.device = destination.device();
  instruction.bytes = bytes;
  instruction.pattern[0] = pattern[0];
  instruction.pattern[1] = pattern[1];
  note_tensor(instruction, copy_descriptor(describe(destination)), destination.storage, true);
  add(std::move(instruction));
}

void Recorder::note_live(PyObject* callable) {
  if (is_refused()) return;
  if (instructions.empty() || instructions.back().kind != Instruction::Kind::Kernel)
    return refuse("live numbers without a kernel that takes them");
  Instruction& last = instructions.back();
  int first = last.value_count;
  const auto is_number = [&](int i) {
    return last.values[i].kind == CB_FLOAT || last.values[i].kind == CB_INT || last.values[i].kind == CB_SCALAR;
  };
  while (first > 0 && is_number(first - 1)) --first;
  last.live = Ref<>::borrow(callable);
  last.live_first = first;
}

// ---- where the program is

void find_program_line(std::string& file, int& line) {
  static constexpr std::string_view inside[] = {"/candelabra/", "/candelabra_", "<frozen", "<candelabra"};
  PyFrameObject* frame = PyEval_GetFrame();
  Ref<> held = Ref<>::borrow(reinterpret_cast<PyObject*>(frame));
  while (held) {
    auto* const current_frame = reinterpret_cast<PyFrameObject*>(held.get());
    const Ref<> code(reinterpret_cast<PyObject*>(PyFrame_GetCode(current_frame)));
    const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    if (!name) PyErr_Clear();
    const std::string_view path = name ? name : "?";
    const bool is_inside = std::any_of(std::begin(inside), std::end(inside),
                                       [&](std::string_view part) { return path.find(part) != path.npos; });
    if (!is_inside) {
      file = path;
      line = PyFrame_GetLineNumber(current_frame);
      return;
    }
    held = Ref<>(reinterpret_cast<PyObject*>(PyFrame_GetBack(current_frame)));
  }
}

}  // namespace candelabra
