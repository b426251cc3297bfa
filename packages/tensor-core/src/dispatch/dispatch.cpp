// Runs a parsed call: device, shape rule, memory, kernel.
#include <bit>
#include <cstring>
#include <utility>

#include "device/random.hpp"
#include "device/streams.hpp"
#include "dispatch/python_kernel.hpp"
#include "operators/operator.hpp"

namespace candelabra {

namespace {

// The number of elements read and written from which a kernel runs without the GIL.
constexpr int64_t release_threshold = 1 << 15;

// What a kernel gets. allocate_output() casts the cb_call, which is first, back to the frame.
struct Frame {
  cb_call call;
  Call* owner;
  cb_tensor outputs[max_outputs];
  cb_value values[max_arguments];
  uint64_t contents[max_arguments];
  PyThreadState* unlocked = nullptr;  // set while the kernel runs without the GIL
  char error[512];
};

cb_tensor describe(const TensorObject& tensor) {
  return {tensor.data(),
          tensor.sizes.data(),
          tensor.strides.data(),
          tensor.numel,
          tensor.ndim(),
          static_cast<int32_t>(tensor.dtype),
          tensor.storage->device.index,
          0};
}

// Output as the kernel sees it: with the reduced dimensions, of stride 0, even for keepdim=False.
cb_tensor describe_output(Call& call, const Output& output, const TensorObject& tensor) {
  cb_tensor result = describe(tensor);
  if (!(output.inserted | output.reduced)) return result;
  int ndim = tensor.ndim() + std::popcount(output.inserted);
  int64_t* sizes = call.arena.make<int64_t>(ndim);
  int64_t* strides = call.arena.make<int64_t>(ndim);
  for (int i = 0, from = 0; i < ndim; ++i) {
    bool inserted = output.inserted >> i & 1;
    sizes[i] = inserted ? 1 : tensor.sizes[from];
    strides[i] = inserted || (output.reduced >> i & 1) ? 0 : tensor.strides[from];
    if (!inserted) ++from;
  }
  result.sizes = sizes;
  result.strides = strides;
  result.ndim = ndim;
  return result;
}

// A result that the caller does not need, in scratch memory.
cb_tensor describe_scratch(Call& call, const Output& output) {
  int64_t* strides = call.arena.make<int64_t>(output.sizes.size());
  int64_t numel = 1;
  for (int i = output.sizes.size() - 1; i >= 0; --i) {
    strides[i] = numel;
    numel *= output.sizes[i];
  }
  return {output.scratch,
          output.sizes.data(),
          strides,
          numel,
          output.sizes.size(),
          static_cast<int32_t>(output.dtype),
          call.device.index,
          0};
}

template <typename T>
T* in_arena(Call& call, const T& value) {
  T* memory = call.arena.make<T>(1);
  *memory = value;
  return memory;
}

cb_value describe_argument(Call& call, Argument& argument) {
  cb_value value{};
  switch (argument.kind) {
    case ArgumentKind::None:
      value.kind = CB_NONE;
      break;
    case ArgumentKind::Tensor:
    case ArgumentKind::Number:
      value.kind = CB_TENSOR;
      value.as.tensor = argument.descriptor ? argument.descriptor : in_arena(call, describe(*argument.tensor));
      break;
    case ArgumentKind::Tensors: {
      value.kind = CB_TENSORS;
      value.count = argument.count;
      const cb_tensor** list = call.arena.make<const cb_tensor*>(argument.count);
      for (int k = 0; k < argument.count; ++k) {
        list[k] = argument.tensors[k] ? in_arena(call, describe(*argument.tensors[k])) : nullptr;
      }
      value.as.tensors = list;
      break;
    }
    case ArgumentKind::Scalar:
      value.kind = CB_SCALAR;
      value.as.scalar = &argument.scalar;
      break;
    case ArgumentKind::Int:
    case ArgumentKind::Bool:
      value.kind = CB_INT;
      value.as.i = argument.i;
      break;
    case ArgumentKind::Float:
      value.kind = CB_FLOAT;
      value.as.f = argument.f;
      break;
    case ArgumentKind::Ints:
      value.kind = CB_INTS;
      value.count = argument.count;
      value.as.ints = argument.ints;
      break;
    case ArgumentKind::Floats:
      value.kind = CB_FLOATS;
      value.count = argument.count;
      value.as.floats = argument.floats;
      break;
    case ArgumentKind::String:
      value.kind = CB_STRING;
      value.as.string = argument.string;
      break;
    case ArgumentKind::Dtype:
      value.kind = CB_INT;
      value.as.i = static_cast<int64_t>(argument.dtype);
      break;
    case ArgumentKind::Device:
    case ArgumentKind::MemoryFormat:
      value.kind = CB_NONE;  // the core has handled it
      break;
  }
  return value;
}

bool shares_memory_with_arguments(const Call& call, const TensorObject* tensor, int first) {
  for (int i = first; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor() && argument.tensor->storage == tensor->storage) return true;
    if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) {
        if (argument.tensors[k] && argument.tensors[k]->storage == tensor->storage) return true;
      }
    }
  }
  return false;
}

void check_writable(const Call& call, const TensorObject& tensor) {
  if (call.op.tags & tag_one_value) return;  // overlap is harmless
  check(!may_overlap_itself(tensor), PyExc_RuntimeError, call.name(),
        "(): unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please "
        "clone() the "
        "tensor before performing the operation.");
}

// An in-place call reads its other arguments while it writes self. An argument must not share
// memory with self or, for elementwise operators, must be the same elements.
void separate_arguments(Call& call, TensorObject* self) {
  for (int i = 1; i < call.argument_count; ++i) {
    Argument& argument = call[i];
    if (!argument.is_tensor() || argument.tensor->storage != self->storage) continue;
    if (call.op.elementwise) {
      check(!share_memory_partly(*argument.tensor, *self), PyExc_RuntimeError, call.name(),
            "(): unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory "
            "location. "
            "Please clone() the tensor before performing the operation.");
    } else {
      argument.tensor = call.keep(clone(argument.tensor, MemoryFormat::Preserve));
    }
  }
}

// Throws where out= shares memory with an input in a way that the operator does not allow.
void check_memory(const Call& call, const TensorObject& out) {
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor()) {
      check_out_memory(call.name(), call.op.out_memory, out, *argument.tensor);
    } else if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) {
        if (argument.tensors[k]) check_out_memory(call.name(), call.op.out_memory, out, *argument.tensors[k]);
      }
    }
  }
}

// Whether the kernel must write to a temporary tensor: the caller's has another dtype than the
// result, is read by the kernel too, or is not contiguous, which only elementwise kernels accept.
bool needs_temporary(Call& call, const Output& output) {
  TensorObject& given = *output.given;
  if (given.dtype != output.dtype) {
    check(can_cast(output.dtype, given.dtype), PyExc_RuntimeError, call.name(), "(): result type ",
          info(output.dtype).type_name, " can't be cast to the desired output type ", info(given.dtype).type_name);
    return true;
  }
  if (call.op.returns_self) return false;
  return (!call.op.elementwise && !given.contiguous) || shares_memory_with_arguments(call, &given, 0);
}

void prepare_output(Call& call, Output& output) {
  if (!output.given) {
    output.tensor = output.strides ? empty_strided(output.sizes, *output.strides, output.dtype, call.device)
                                   : empty(output.sizes, output.dtype, call.device);
    return;
  }
  TensorObject& given = *output.given;
  if (call.op.returns_self) {
    check(given.sizes == output.sizes, PyExc_RuntimeError, call.name(), "(): output with shape ", shown(given.sizes),
          " doesn't match the broadcast shape ", shown(output.sizes));
  } else {
    check(given.device() == call.device, PyExc_RuntimeError, call.name(),
          "(): Expected all tensors to be on the same device, but out= is on ", to_text(given.device()),
          " and the arguments are on ", to_text(call.device));
    check_out_dtype(call.name(), output.dtype, given.dtype);
    if (call.op.out_memory != OutMemory::Any) check_memory(call, given);
  }
  // Resizing may free memory that an argument shares and that the kernel has yet to read. It also
  // warns where there were elements, and a warning may run any code. In both cases the result goes
  // to a temporary tensor, and finish_output() resizes.
  const bool resize = !(given.sizes == output.sizes);
  if (needs_temporary(call, output) || (resize && given.numel != 0)) {
    if (!resize) check_writable(call, given);
    output.tensor = empty(output.sizes, output.dtype, call.device);
    return;
  }
  if (resize) resize_output(call.name(), given, output.sizes);
  check_writable(call, given);
  output.tensor = TensorRef::borrow(&given);
}

// Restores the sizes of empty out= tensors where the call fails.
class OutSizesGuard {
 public:
  explicit OutSizesGuard(Call& call) : call_(call) {
    for (int k = 0; k < call.output_count; ++k) {
      const TensorObject* given = call.outputs[k].given;
      if (given && given->numel == 0 && !(given->sizes == call.outputs[k].sizes))
        before_[k] = Before{given->sizes, given->strides};
    }
  }
  // Whether any out= tensor may be resized.
  static bool may_change(const Call& call) {
    for (int k = 0; k < call.output_count; ++k) {
      if (call.outputs[k].given && call.outputs[k].given->numel == 0) return true;
    }
    return false;
  }
  void restore() {
    for (int k = 0; k < call_.output_count; ++k) {
      if (before_[k])
        set_geometry(*call_.outputs[k].given, std::move(before_[k]->sizes), std::move(before_[k]->strides), 0);
    }
  }

 private:
  struct Before {
    Dims sizes, strides;
  };
  Call& call_;
  std::array<std::optional<Before>, max_outputs> before_;
};

// Copies the result to the caller's tensor, which is what is returned.
void finish_output(const Call& call, Output& output) {
  if (!output.given || output.tensor.get() == output.given) return;
  if (!call.op.returns_self) resize_output(call.name(), *output.given, output.tensor->sizes);
  copy_into(output.given, output.tensor.get());
  output.tensor = TensorRef::borrow(output.given);
}

// Holds the GIL again inside a kernel that runs without it.
class ReacquireGil {
 public:
  explicit ReacquireGil(Frame& frame) : frame_(frame) {
    if (!frame.unlocked) return;
    PyEval_RestoreThread(std::exchange(frame.unlocked, nullptr));
    taken_ = true;
  }
  ReacquireGil(const ReacquireGil&) = delete;
  ReacquireGil& operator=(const ReacquireGil&) = delete;
  ~ReacquireGil() {
    if (taken_) frame_.unlocked = PyEval_SaveThread();
  }

 private:
  Frame& frame_;
  bool taken_ = false;
};

int32_t allocate_output(cb_call* kernel_call, int32_t index, int32_t ndim, const int64_t* sizes) {
  Frame& frame = *reinterpret_cast<Frame*>(kernel_call);
  const ReacquireGil locked(frame);
  try {
    Call& call = *frame.owner;
    check(index >= 0 && index < call.output_count && ndim >= 0 && ndim <= max_dims, PyExc_RuntimeError, call.name(),
          "(): allocate_output() was asked for an output that is not there");
    Output& output = call.outputs[index];
    output.sizes = Dims(std::span(sizes, static_cast<size_t>(ndim)));
    prepare_output(call, output);
    frame.outputs[index] = describe(*output.tensor.get());
    return CB_OK;
  } catch (...) {
    set_python_error();
    return CB_RUNTIME_ERROR;  // run() finds the Python exception that is set
  }
}

[[noreturn]] void raise_kernel_failure(Call& call, const Frame& frame, int32_t status) {
  if (PyErr_Occurred()) throw PythonError();
  if (status == CB_NOT_IMPLEMENTED && !frame.error[0] && (call.op.tags & tag_declines)) throw Declined();
  if (frame.error[0]) {
    // A message that names the operator needs no prefix.
    bool named = std::strstr(frame.error, call.name()) != nullptr;
    raise(exception_of_status(status), named ? "" : call.name(), named ? "" : "(): ", frame.error);
  }
  if (status == CB_NOT_IMPLEMENTED) {
    const char* dtype = info(call.outputs[0].dtype).type_name;
    for (int i = 0; i < call.argument_count; ++i) {
      if (frame.values[i].kind == CB_TENSOR) {
        dtype = info(static_cast<Dtype>(frame.values[i].as.tensor->dtype)).type_name;
        break;
      }
    }
    raise(PyExc_NotImplementedError, '"', call.name(), "\" not implemented for '", dtype, "' on device ",
          to_text(call.device));
  }
  raise(exception_of_status(status), call.name(), "(): the kernel of device ", to_text(call.device),
        " failed with status ", status);
}

int64_t elements_accessed(const Call& call) {
  int64_t elements = 0;
  for (int k = 0; k < call.output_count; ++k)
    elements += call.outputs[k].tensor.get() ? call.outputs[k].tensor->numel : 0;
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor()) elements += argument.tensor->numel;
    if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) elements += argument.tensors[k] ? argument.tensors[k]->numel : 0;
    }
  }
  return elements;
}

void call_kernel(Call& call, const Kernel& kernel) {
  Frame frame;
  cb_call& c = frame.call;
  frame.owner = &call;
  frame.error[0] = 0;
  c.size = sizeof(cb_call);
  c.host = &host_services;
  c.backend = kernel.backend;
  c.operator_name = call.op.functional ? call.op.functional->schema.name.c_str() : call.name();
  c.device_index = call.device.index;
  c.output_count = call.output_count;
  c.argument_count = call.argument_count;
  c.reserved = 0;
  c.outputs = frame.outputs;
  c.arguments = frame.values;
  c.stream = current_stream(call.device);
  c.random_seed = c.random_offset = 0;
  c.error = frame.error;
  c.error_capacity = sizeof frame.error;
  c.contents = nullptr;
  for (int i = 0; i < call.argument_count; ++i) frame.values[i] = describe_argument(call, call[i]);
  for (int k = 0; k < call.output_count; ++k) {
    const Output& output = call.outputs[k];
    if (output.scratch) {
      frame.outputs[k] = describe_scratch(call, output);
      continue;
    }
    frame.outputs[k] = output.tensor ? describe_output(call, output, *output.tensor.get()) : cb_tensor{};
    if (!output.tensor) frame.outputs[k].dtype = static_cast<int32_t>(output.dtype);
  }
  if (call.op.tags & tag_random) {
    GeneratorState taken = take_random_numbers(call);
    c.random_seed = taken.seed;
    c.random_offset = taken.offset;
  }
  if (kernel.reads_contents) {
    c.contents = frame.contents;
    for (int i = 0; i < call.argument_count; ++i)
      frame.contents[i] = call[i].is_tensor() ? contents_of(call[i].tensor->storage) : 0;
  }
  int32_t status;
  // The work of a custom kernel does not follow from its arguments. A kernel whose result shape
  // depends on data waits for its device where that is asynchronous; the device may wait for what
  // another thread has yet to queue.
  const bool is_unlocked = call.op.tags & tag_data_dependent
                               ? device_type(call.device).has(CB_CAP_ASYNCHRONOUS)
                               : (call.op.tags & tag_custom) || elements_accessed(call) >= release_threshold;
  if (is_unlocked) {
    frame.unlocked = PyEval_SaveThread();
    status = kernel.compiled(&c);
    PyEval_RestoreThread(std::exchange(frame.unlocked, nullptr));
  } else {
    status = kernel.compiled(&c);
  }
  if (status != CB_OK) [[unlikely]]
    raise_kernel_failure(call, frame, status);
}

}  // namespace

const cb_host host_services = {sizeof(cb_host), CB_ABI_MAJOR, CB_ABI_MINOR, allocate_output};

void resolve_device(Call& call) {
  const TensorObject* deciding = nullptr;
  bool mixed = false;
  auto look = [&](const TensorObject* tensor) {
    if (!deciding) {
      deciding = tensor;
    } else if (tensor->storage->device != deciding->storage->device) {
      mixed = true;
      if (deciding->ndim() == 0 && tensor->ndim() > 0) deciding = tensor;
    }
  };
  const Device* requested = nullptr;
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.kind == ArgumentKind::Tensor) {
      look(argument.tensor);
    } else if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) {
        if (argument.tensors[k]) look(argument.tensors[k]);
      }
    } else if (argument.kind == ArgumentKind::Device) {
      requested = &argument.device;
    }
  }
  if (!deciding) {
    call.device = requested ? *requested : default_device();
    return;
  }
  call.device = deciding->device();
  if (!mixed || (call.op.tags & (tag_any_device | tag_core | tag_custom))) return;
  for (int i = 0; i < call.argument_count; ++i) {
    Argument& argument = call[i];
    const TensorObject* odd = nullptr;
    if (argument.is_tensor() && argument.tensor->device() != call.device) {
      if (argument.tensor->ndim() == 0 && (call.op.tags & tag_numbers) &&
          device_type(argument.tensor->device()).has(CB_CAP_HOST_MEMORY) && !(call.in_place && i == 0)) {
        argument.scalar = item(argument.tensor);
        argument.kind = ArgumentKind::Number;
        continue;
      }
      odd = argument.tensor;
    } else if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count && !odd; ++k) {
        if (argument.tensors[k] && argument.tensors[k]->device() != call.device) odd = argument.tensors[k];
      }
    }
    check(!odd, PyExc_RuntimeError, "Expected all tensors to be on the same device, but found at least two devices, ",
          to_text(call.device), " and ", odd ? to_text(odd->device()) : "", " (argument '",
          call.op.schema.parameters[i].name, "' of ", call.name(), "()); move one with .to(device)");
  }
}

void resize_output(const char* operator_name, TensorObject& out, std::span<const int64_t> sizes) {
  if (std::ranges::equal(std::span<const int64_t>(out.sizes), sizes)) return;
  if (out.numel != 0) {
    std::string message =
        text("An output with one or more elements was resized since it had shape ", shown(out.sizes),
             ", which does not match the required output shape ", to_text(sizes), " of ", operator_name,
             "(). You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements.");
    warn(message);
  }
  int64_t bytes = product(sizes) * itemsize(out.dtype);
  if (static_cast<size_t>(bytes) > out.storage->bytes || out.offset != 0) {
    Storage* old = std::exchange(out.storage, make_storage(out.device(), static_cast<size_t>(bytes)));
    release(old);
  }
  set_geometry(out, Dims(sizes), contiguous_strides(sizes), 0);
}

GeneratorState take_random_numbers(Call& call) {
  GeneratorState& state = generator_state(call.generator, call.device);
  GeneratorState taken = state;
  int64_t count = call.output_count > 0 ? std::max<int64_t>(product(call.outputs[0].sizes), 1) : 1;
  state.offset += static_cast<uint64_t>(count + 1) / 2;
  return taken;
}

namespace {

// The largest size in bytes of a result in scratch memory: enough for the statistics of a
// normalization.
constexpr int64_t scratch_limit = 512;

// Gives a small result that the caller does not need scratch memory; returns whether it has.
bool prepare_scratch(Call& call, const Kernel& kernel, Output& output) {
  if (!kernel.compiled || output.strides || output.inserted || output.reduced) return false;
  if (!device_type(call.device).has(CB_CAP_HOST_MEMORY)) return false;
  const int64_t bytes = product(output.sizes) * itemsize(output.dtype);
  if (bytes > scratch_limit) return false;
  output.scratch = call.arena.make<std::byte>(static_cast<size_t>(bytes));
  return true;
}

// Allocates the results and calls the kernel.
void compute(Call& call) {
  Operator& op = call.op;
  const Kernel& kernel = op.kernel_table()[call.device.type];
  if (!(op.tags & tag_data_dependent)) {
    for (int k = 0; k < call.output_count; ++k) {
      if (call.outputs[k].tensor || (call.first_alone && k > 0 && prepare_scratch(call, kernel, call.outputs[k])))
        continue;
      prepare_output(call, call.outputs[k]);
    }
  }
  if (kernel.compiled) [[likely]] {
    call_kernel(call, kernel);
  } else if (kernel.python) {
    call_python_kernel(call, kernel.python);
  } else {
    raise(PyExc_NotImplementedError, "the operator ", call.name(), " has no kernel on device ", to_text(call.device),
          " (", device_type(call.device).distribution,
          "), and no decomposition; python -m candelabra.backends lists what there is");
  }
  for (int k = 0; k < call.output_count; ++k) {
    if (call.outputs[k].scratch) continue;
    check(static_cast<bool>(call.outputs[k].tensor), PyExc_RuntimeError, call.name(),
          "(): the kernel asked for no memory for result ", k, ": allocate_output() gives it");
    finish_output(call, call.outputs[k]);
  }
}

}  // namespace

void run(Call& call) {
  Operator& op = call.op;
  if (call.device.type < 0) resolve_device(call);
  if (op.returns_self && op.functional) separate_arguments(call, call[Operator::self_position].tensor);
  op.shape(call);
  if (call.result || (op.tags & tag_core)) return;
  if (op.tags & tag_view) {
    for (int k = 0; k < call.output_count; ++k) {
      Output& output = call.outputs[k];
      output.tensor = make_view(output.view_of, std::move(output.sizes), std::move(*output.strides), output.offset);
      output.tensor->dtype = output.dtype;
      // No tape sees the result of detach().
      if (op.tags & tag_nondifferentiable) output.tensor->unrecorded_view = false;
    }
    return;
  }
  if (call.output_count > 0 && call.outputs[0].given && !op.returns_self && OutSizesGuard::may_change(call))
      [[unlikely]] {
    OutSizesGuard given(call);
    try {
      return compute(call);
    } catch (...) {
      given.restore();
      throw;
    }
  }
  compute(call);
}

}  // namespace candelabra
