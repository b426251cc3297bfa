#include "record/program.hpp"

#include <algorithm>
#include <numeric>

#include "device/streams.hpp"
#include "dispatch/kernel_call.hpp"
#include "dispatch/python_kernel.hpp"
#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// Writes where a descriptor lies.
void set_address(cb_tensor& tensor, const Storage& storage, int64_t offset) {
  tensor.data = storage.is_addressable && storage.data ? static_cast<char*>(storage.data) + offset : nullptr;
  tensor.storage = storage.handle;
  tensor.offset = static_cast<uint64_t>(offset);
  tensor.memory_kind = storage.kind;
  tensor.flags = (tensor.flags & ~static_cast<uint32_t>(CB_TENSOR_HOST_VISIBLE)) |
                 (storage.is_host_visible ? uint32_t{CB_TENSOR_HOST_VISIBLE} : 0u);
}

class Running {
 public:
  explicit Running(bool& flag) : flag_(flag) { flag_ = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { flag_ = false; }

 private:
  bool& flag_;
};

}  // namespace

Program::Program(std::shared_ptr<Recorder> recording, bool is_debugged)
    : recording_(std::move(recording)), is_debugged_(is_debugged) {}

int Program::visit(visitproc visitor, void* arg) const {
  const auto tensors_of = [&](const std::vector<TensorRef>& tensors) {
    return visit_each(tensors, [&](const TensorRef& tensor) { return visit_references(visitor, arg, tensor); });
  };
  if (const int found = arguments.visit(visitor, arg)) return found;
  if (const int found = result.root.visit(visitor, arg)) return found;
  if (const int found =
          visit_each(inputs, [&](const Input& input) { return visit_references(visitor, arg, input.parameter); }))
    return found;
  if (const int found = visit_each(produced, [&](const Produced& one) {
        return visit_references(visitor, arg, one.object, one.node, one.parameter);
      }))
    return found;
  if (const int found = tensors_of(cleared)) return found;
  if (const int found = tensors_of(cleared_last)) return found;
  return visit_each(guards, [&](const std::shared_ptr<Guard>& guard) { return guard->visit(visitor, arg); });
}

// What is given up is destroyed when the program no longer has it, since finalizers may come back
// here.
void Program::clear() {
  is_cleared_ = true;
  const ArgumentTree old_arguments = std::exchange(arguments, {});
  const ResultTree old_result = std::exchange(result, {});
  const std::vector<Input> old_inputs = std::exchange(inputs, {});
  const std::vector<Produced> old_produced = std::exchange(produced, {});
  const std::vector<TensorRef> old_cleared = std::exchange(cleared, {});
  const std::vector<TensorRef> old_cleared_last = std::exchange(cleared_last, {});
  const std::vector<std::shared_ptr<Guard>> old_guards = std::exchange(guards, {});
}

bool Program::accepts(PyObject* const* values, Py_ssize_t count, PyObject* names, std::vector<TensorObject*>& tensors) {
  tensors.clear();
  if (is_cleared_ || !arguments.matches(values, count, names, tensors)) return false;
  for (size_t k = tensors.size(); k < inputs.size(); ++k) {
    PyObject* const grad = inputs[k].parameter->grad;
    if (!grad) return false;
    tensors.push_back(as_tensor(grad));
  }
  if (tensors.size() != inputs.size() || !fits_inputs(tensors)) return false;
  return std::ranges::all_of(guards, [](const std::shared_ptr<Guard>& guard) { return guard->holds(); });
}

// What code sees of an argument besides its values: whether it is a view, has attributes of its own
// or is the same object as another.
bool Program::is_like_argument(const std::vector<TensorObject*>& tensors, size_t k) const {
  const Input& expected = inputs[k];
  const TensorObject& tensor = *tensors[k];
  if ((tensor.base != nullptr) != expected.is_view || (tensor.dict && PyDict_GET_SIZE(tensor.dict) > 0)) return false;
  const auto first = std::find(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(k), tensors[k]);
  const auto number = first - tensors.begin();
  return expected.same_as < 0 ? number == static_cast<std::ptrdiff_t>(k) : number == expected.same_as;
}

bool Program::fits_inputs(const std::vector<TensorObject*>& tensors) const {
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& expected = inputs[k];
    TensorObject& tensor = *tensors[k];
    if (Py_TYPE(&tensor) != expected.type || tensor.dtype != expected.dtype || tensor.device() != expected.device ||
        requires_grad(&tensor) != expected.requires_grad || (tensor.grad_fn != nullptr) != expected.has_history ||
        tensor.hooks || tensor.inference != expected.is_inference || !(tensor.sizes == expected.sizes) ||
        !(tensor.strides == expected.strides))
      return false;
    if (expected.is_argument && !is_like_argument(tensors, k)) return false;
    Storage* const root = root_storage(tensor.storage);
    const int64_t offset = tensor.offset * itemsize(tensor.dtype);
    if (expected.pinned) {
      if (root != expected.pinned.get() || offset != expected.offset) return false;
      continue;
    }
    // Two arguments share memory exactly where they did, at the same distance.
    for (size_t j = 0; j < k; ++j) {
      if (inputs[j].pinned) continue;
      const bool shares = root_storage(tensors[j]->storage) == root;
      if (shares != (inputs[j].buffer == expected.buffer && expected.buffer >= 0)) return false;
      if (shares && offset - tensors[j]->offset * itemsize(tensors[j]->dtype) != expected.offset - inputs[j].offset)
        return false;
    }
    if (expected.buffer < 0) continue;
    // It does not share memory with what the program reaches by itself.
    const int known = recording_->find_existing(root);
    if (known >= 0 && planned_[static_cast<size_t>(known)].place == Place::Existing) return false;
    const RecordedBuffer& buffer = recording_->buffers[static_cast<size_t>(expected.buffer)];
    const int64_t shift = offset - expected.offset;
    if (buffer.high > 0 && (buffer.low + shift < 0 || buffer.high + shift > static_cast<int64_t>(root->bytes)))
      return false;
  }
  return true;
}

void Program::set_bases(const std::vector<TensorObject*>& tensors, StorageRef& arena) {
  if (arena_bytes_ > 0) {
    arena = StorageRef(make_storage(device_, arena_bytes_));
    if (is_debugged_ && arena->is_host_visible) std::memset(arena->data, 0xff, arena_bytes_);
  }
  for (size_t b = 0; b < planned_.size(); ++b) {
    const Planned& planned = planned_[b];
    Base& base = bases_[b];
    if (planned.place == Place::Input) {
      const TensorObject& tensor = *tensors[static_cast<size_t>(planned.input)];
      base.storage = root_storage(tensor.storage);
      base.offset = tensor.offset * itemsize(tensor.dtype) - inputs[static_cast<size_t>(planned.input)].offset;
    } else if (planned.place == Place::Existing) {
      const RecordedBuffer& buffer = recording_->buffers[b];
      base.storage = buffer.existing.get();
      check(base.storage->bytes >= static_cast<size_t>(buffer.high), PyExc_RuntimeError,
            "memory that a compiled program uses has been made smaller");
    } else if (planned.place == Place::Constant) {
      base.storage = planned.constant.get();
    }
  }
}

void Program::begin_memory(const Step& step, Owned& owned, const StorageRef& arena) {
  for (const int b : step.begins) {
    const auto number = static_cast<size_t>(b);
    const Planned& planned = planned_[number];
    if (planned.owner >= 0) {
      bases_[number] = bases_[static_cast<size_t>(planned.owner)];
    } else if (planned.place == Place::Arena) {
      bases_[number] = {arena.get(), planned.offset};
    } else {
      owned[number] = StorageRef(make_storage(device_, planned.bytes));
      bases_[number] = {owned[number].get(), 0};
    }
    if (!recording_->is_constant(b)) continue;
    const Base& base = bases_[number];
    copy_bytes_from_host({*base.storage, static_cast<uint64_t>(base.offset)},
                         recording_->buffers[number].constant.data(), planned.bytes);
  }
}

// A debugged program poisons the memory that others would reuse.
void Program::end_memory(const Step& step, Owned& owned) {
  for (const int b : step.ends) {
    const auto number = static_cast<size_t>(b);
    const Base& base = bases_[number];
    if (is_debugged_ && base.storage->is_host_visible)
      std::memset(static_cast<char*>(base.storage->data) + base.offset, 0xff, planned_[number].bytes);
    owned[number].reset();
  }
}

void Program::take_live(Instruction& instruction) {
  const Ref<> numbers = owned(PyObject_CallNoArgs(instruction.live.get()));
  check(PyTuple_Check(numbers.get()) &&
            PyTuple_GET_SIZE(numbers.get()) == instruction.value_count - instruction.live_first,
        PyExc_RuntimeError, instruction.op->schema.name, "(): the live numbers of an optimizer have changed in number");
  for (int i = instruction.live_first; i < instruction.value_count; ++i) {
    PyObject* const number = PyTuple_GET_ITEM(numbers.get(), i - instruction.live_first);
    cb_value& value = instruction.values[i];
    if (value.kind == CB_SCALAR) {
      *const_cast<cb_scalar*>(value.as.scalar) = scalar_from_object(number);
    } else if (value.kind == CB_FLOAT) {
      value.as.f = PyFloat_AsDouble(number);
    } else {
      value.as.i = PyLong_AsLongLong(number);
    }
    if (PyErr_Occurred()) throw PythonError();
  }
}

// Caches of kernels, such as those of packed weights, must see that the memory has changed.
void Program::note_changes(const Instruction& instruction) {
  for (const int b : instruction.written) {
    const Place place = planned_[static_cast<size_t>(b)].place;
    if (place == Place::Input || place == Place::Existing || place == Place::New)
      ++bases_[static_cast<size_t>(b)].storage->past_changes;
  }
}

void Program::execute(Instruction& instruction) {
  for (const int b : instruction.written) {
    if (Storage* const storage = bases_[static_cast<size_t>(b)].storage) make_writable(storage);
  }
  for (const Operand& operand : instruction.operands) {
    const Base& base = bases_[static_cast<size_t>(operand.buffer)];
    set_address(*operand.tensor, *base.storage, base.offset + operand.offset);
  }
  const auto position = [&](size_t k) {
    const Operand& operand = instruction.operands[k];
    const Base& base = bases_[static_cast<size_t>(operand.buffer)];
    return Position{*base.storage, static_cast<uint64_t>(base.offset + operand.offset)};
  };
  if (instruction.kind == Instruction::Kind::Fill) {
    wait_for(instruction.device);
    char* const memory = position(0).address();
    size_t done = 0;
    for (; done + 16 <= instruction.bytes; done += 16) std::memcpy(memory + done, instruction.pattern, 16);
    std::memcpy(memory + done, instruction.pattern, instruction.bytes - done);
    return;
  }
  if (instruction.kind == Instruction::Kind::Copy) {
    const Position to = position(0), from = position(1);
    if (to.storage.is_host_visible && from.storage.is_host_visible) {
      wait_for(instruction.device);
      std::memcpy(to.address(), from.address(), instruction.bytes);
    } else {
      copy_bytes_within(to, from, instruction.bytes);
    }
    return;
  }
  if (instruction.live) take_live(instruction);
  GeneratorState random;
  if (instruction.is_random) {
    GeneratorState& state = generator_state(instruction.generator.get(), instruction.device);
    random = state;
    state.offset += instruction.random_blocks;
  }
  uint64_t versions[max_arguments];
  const bool reads_versions = instruction.kernel.flags & CB_KERNEL_READS_VERSIONS;
  for (int i = 0; reads_versions && i < instruction.value_count; ++i) {
    const int b = instruction.value_buffers[static_cast<size_t>(i)];
    const Place place = b >= 0 ? planned_[static_cast<size_t>(b)].place : Place::None;
    const bool lasts = place != Place::None && place != Place::Arena && place != Place::Block;
    versions[i] = lasts ? contents_of(bases_[static_cast<size_t>(b)].storage) : 0;
  }
  replay_kernel({*instruction.op, instruction.kernel, instruction.device, instruction.outputs, instruction.output_count,
                 instruction.values, instruction.value_count, reads_versions ? versions : nullptr, random,
                 instruction.is_unlocked});
}

Ref<> Program::make(const Produced& one, const std::vector<TensorObject*>& tensors) const {
  switch (one.from) {
    case Produced::From::Object:
      return one.object;
    case Produced::From::Input:
      return Ref<>::borrow(as_object(tensors[static_cast<size_t>(one.input)]));
    case Produced::From::ViewOfInput: {
      TensorObject* const input = tensors[static_cast<size_t>(one.input)];
      return Ref<>(make_view(input, one.sizes, one.strides, input->offset + one.offset).release_object());
    }
    case Produced::From::Memory:
      break;
  }
  const Base& base = bases_[static_cast<size_t>(one.buffer)];
  TensorRef made = make_tensor(retain(base.storage), one.dtype, one.sizes, one.strides, one.offset);
  if (one.node) {
    track(made.get());
    made->grad_fn = Py_NewRef(one.node.get());
    made->requires_grad = true;
  }
  return Ref<>(made.release_object());
}

PyObject* Program::run(const std::vector<TensorObject*>& tensors) {
  const Running running(is_running_);
  std::vector<TensorRef> kept;
  for (TensorObject* tensor : tensors) kept.push_back(TensorRef::borrow(tensor));
  for (const TensorRef& parameter : cleared) Py_CLEAR(parameter->grad);
  StorageRef arena;
  set_bases(tensors, arena);
  Owned owned(planned_.size());
  for (const Step& step : steps_) {
    begin_memory(step, owned, arena);
    if (step.tiling) run_tiles(step);
    for (int i = step.begin; i < step.end; ++i) {
      Instruction& instruction = *order_[static_cast<size_t>(i)];
      if (!step.tiling) execute(instruction);
      note_changes(instruction);
    }
    end_memory(step, owned);
  }
  for (size_t b = 0; b < planned_.size(); ++b) {
    if (planned_[b].place == Place::Existing) bases_[b].storage->version += planned_[b].version_change;
    if (planned_[b].place == Place::Input)
      tensors[static_cast<size_t>(planned_[b].input)]->storage->version += planned_[b].version_change;
  }
  std::vector<Ref<>> made;
  made.reserve(produced.size());
  for (const Produced& one : produced) {
    made.push_back(make(one, tensors));
    if (!one.parameter) continue;
    track(one.parameter.get());
    Py_XSETREF(one.parameter->grad, Py_NewRef(made.back().get()));
  }
  for (const TensorRef& parameter : cleared_last) Py_CLEAR(parameter->grad);
  return result.build(made);
}

}  // namespace candelabra
