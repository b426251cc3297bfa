#include "dispatch/kernel_call.hpp"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "device/host_services.hpp"
#include "device/random.hpp"
#include "device/streams.hpp"
#include "dispatch/outputs.hpp"
#include "dispatch/python_kernel.hpp"
#include "operators/operator.hpp"
#include "python/gil.hpp"
#include "record/recorder.hpp"

namespace candelabra {

namespace {

// The number of elements read and written from which a kernel runs without the GIL.
constexpr int64_t release_threshold = 1 << 15;
constexpr size_t error_capacity = 1024;

// What a kernel gets. The services that take a cb_call, which is first, cast it back to the frame.
struct Frame {
  cb_call call;
  Call* owner;  // null where a program replays the call
  Device device;
  cb_tensor outputs[max_outputs];
  cb_value values[max_arguments];
  uint64_t content_versions[max_arguments];
  std::vector<StorageRef> workspaces;
  PyThreadState* unlocked = nullptr;  // set while the kernel runs without the GIL
  bool has_raised = false;            // a service has set a Python exception
  uint32_t allocated = 0;             // bit mask: outputs that allocate_output() has allocated
  char error[error_capacity];
};

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
  cb_tensor result{};
  result.data = output.scratch;
  result.sizes = output.sizes.data();
  result.strides = strides;
  result.numel = numel;
  result.ndim = output.sizes.size();
  result.dtype = static_cast<int32_t>(output.dtype);
  result.device_index = call.device.index;
  result.flags = CB_TENSOR_HOST_VISIBLE;
  return result;
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

// Holds the GIL again inside a kernel that runs without it.
class ReacquireGil {
 public:
  explicit ReacquireGil(Frame& frame) : frame_(frame) {
    if (!frame.unlocked) return;
    restore_thread(std::exchange(frame.unlocked, nullptr));
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

// Runs the body of a service that a kernel calls, with the GIL.
template <typename Body>
int32_t serve(cb_call* kernel_call, Body&& body) {
  Frame& frame = *reinterpret_cast<Frame*>(kernel_call);
  const ReacquireGil locked(frame);
  try {
    body(frame);
    return CB_OK;
  } catch (...) {
    set_python_error();
    frame.has_raised = true;
    return CB_RUNTIME_ERROR;  // call_kernel() finds the Python exception that is set
  }
}

[[noreturn]] void raise_kernel_failure(Call& call, Frame& frame, int32_t status) {
  if (frame.has_raised) throw PythonError();
  frame.error[error_capacity - 1] = 0;
  const DeviceType& type = device_type(call.device);
  if (status == CB_NOT_IMPLEMENTED && (!frame.error[0] || type.has_cpu_fallback)) {
    if (call.op.tags & tag_random) return_random_numbers(call, {frame.call.random_seed, frame.call.random_offset});
    decline(call);
  }
  const std::string origin =
      text("in the kernel of ", call.name(), " for device ", to_text(call.device), ", from ", type.distribution);
  if (frame.error[0]) {
    // A message that names the operator needs no prefix.
    const bool named = std::strstr(frame.error, call.title()) != nullptr;
    throw Error(exception_of_status(status), text(named ? "" : call.title(), named ? "" : "(): ", frame.error), origin);
  }
  raise(exception_of_status(status), call.title(), "(): the kernel of ", type.distribution, " for device ",
        to_text(call.device), " failed with status ", status, " and left no message");
}

int32_t invoke(Frame& frame, const Kernel& kernel, bool is_unlocked) {
  if (!is_unlocked) return kernel.compiled(&frame.call);
  frame.unlocked = PyEval_SaveThread();
  const int32_t status = kernel.compiled(&frame.call);
  restore_thread(std::exchange(frame.unlocked, nullptr));
  return status;
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

// What no element of is the kernel's dtype: the kernel must not be called.
bool is_supported(const Call& call, const Kernel& kernel) {
  if (!(kernel.dtypes >> static_cast<int>(leading_dtype(call)) & 1)) return false;
  const auto is_known = [&](Dtype dtype) { return kernel.known_dtypes >> static_cast<int>(dtype) & 1; };
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor() && !is_known(argument.tensor->dtype)) return false;
    if (argument.kind == ArgumentKind::Dtype && !is_known(argument.dtype)) return false;
    for (int k = 0; argument.kind == ArgumentKind::Tensors && k < argument.count; ++k)
      if (argument.tensors[k] && !is_known(argument.tensors[k]->dtype)) return false;
  }
  for (int k = 0; k < call.output_count; ++k)
    if (!is_known(call.outputs[k].dtype)) return false;
  return true;
}

}  // namespace

Dtype leading_dtype(const Call& call) {
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.descriptor) return static_cast<Dtype>(argument.descriptor->dtype);
    if (argument.is_tensor()) return argument.tensor->dtype;
    for (int k = 0; argument.kind == ArgumentKind::Tensors && k < argument.count; ++k)
      if (argument.tensors[k]) return argument.tensors[k]->dtype;
  }
  return call.outputs[0].dtype;
}

void raise_not_implemented(Call& call) {
  throw Error(PyExc_NotImplementedError,
              text('"', call.name(), "\" not implemented for '", info(leading_dtype(call)).type_name, "' on device ",
                   to_text(call.device)),
              text("the backend is from ", device_type(call.device).distribution));
}

void decline(Call& call) {
  if ((call.op.tags & tag_composite) || device_type(call.device).has_cpu_fallback || may_decompose(call))
    throw Declined();
  raise_not_implemented(call);
}

void check_supported(Call& call, const Kernel& kernel) {
  if (!is_supported(call, kernel)) decline(call);
}

void call_kernel(Call& call, const Kernel& kernel) {
  Frame frame;
  cb_call& c = frame.call;
  frame.owner = &call;
  frame.device = call.device;
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
  c.content_versions = nullptr;
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
    const GeneratorState taken = take_random_numbers(call);
    c.random_seed = taken.seed;
    c.random_offset = taken.offset;
  }
  if (kernel.flags & CB_KERNEL_READS_VERSIONS) {
    c.content_versions = frame.content_versions;
    for (int i = 0; i < call.argument_count; ++i)
      frame.content_versions[i] = call[i].is_tensor() ? contents_of(call[i].tensor->storage) : 0;
  }
  // The work of a custom kernel does not follow from its arguments. A kernel whose result shape
  // depends on data waits for its device where that is asynchronous; the device may wait for what
  // another thread has yet to queue.
  const bool is_unlocked = call.op.tags & tag_data_dependent
                               ? device_type(call.device).has(CB_CAP_ASYNCHRONOUS)
                               : (call.op.tags & tag_custom) || elements_accessed(call) >= release_threshold;
  Recorder* const active = recorder();
  if (active) [[unlikely]]
    active->note_kernel(call, kernel, c, is_unlocked);
  const int32_t status = invoke(frame, kernel, is_unlocked);
  if (status != CB_OK || frame.has_raised) [[unlikely]] {
    if (active) active->forget_kernel();
    raise_kernel_failure(call, frame, status);
  }
  if (active && frame.allocated) [[unlikely]]
    active->refuse(text("the kernel of ", call.name(), "() chooses the size of a result"));
}

void replay_kernel(const ReplayedCall& call) {
  Frame frame;
  cb_call& c = frame.call;
  frame.owner = nullptr;
  frame.device = call.device;
  frame.error[0] = 0;
  c.size = sizeof(cb_call);
  c.host = &host_services;
  c.backend = call.kernel.backend;
  c.operator_name = call.op.functional ? call.op.functional->schema.name.c_str() : call.op.schema.name.c_str();
  c.device_index = call.device.index;
  c.output_count = call.output_count;
  c.argument_count = call.argument_count;
  c.reserved = 0;
  c.outputs = call.outputs;
  c.arguments = call.arguments;
  c.stream = current_stream(call.device);
  c.random_seed = call.random.seed;
  c.random_offset = call.random.offset;
  c.error = frame.error;
  c.error_capacity = sizeof frame.error;
  c.content_versions = call.content_versions;
  const int32_t status = invoke(frame, call.kernel, call.is_unlocked);
  if (status == CB_OK && !frame.has_raised) [[likely]]
    return;
  if (frame.has_raised) throw PythonError();
  frame.error[error_capacity - 1] = 0;
  raise(exception_of_status(status), call.op.message_name(), "(): ", frame.error[0] ? frame.error : "the kernel failed",
        " (in a compiled program)");
}

// ---- services that kernels call

namespace {

// Whether this may be Python's main thread. It is the process's, and a forked child's only one,
// except where a program embeds Python in another thread: there, kernels cannot be interrupted.
bool may_handle_signals() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return true;  // Python looks itself, with the GIL
#endif
}

}  // namespace

int32_t allocate_output(cb_call* kernel_call, int32_t index, int32_t ndim, const int64_t* sizes) {
  return serve(kernel_call, [&](Frame& frame) {
    check(frame.owner, backend_error,
          "a replayed kernel asked for the memory of an output, which it did not when it was recorded");
    Call& call = *frame.owner;
    const std::string& distribution = device_type(call.device).distribution;
    check(index >= 0 && index < call.output_count, backend_error, distribution, ": the kernel of ", call.name(),
          " asked for the memory of output ", index, "; there are ", call.output_count);
    Output& output = call.outputs[index];
    // A result that the rule leaves empty may be given its size by the kernel, such as the state
    // that recurrent_stack_kept keeps.
    const bool is_open = (call.op.tags & tag_data_dependent) || (output.tensor && output.tensor->numel == 0);
    check(is_open, backend_error, distribution, ": the kernel of ", call.name(), " asked for the memory of output ",
          index, ", which the core has allocated");
    check(!(frame.allocated >> index & 1), backend_error, distribution, ": the kernel of ", call.name(),
          " asked for the memory of output ", index, " twice");
    frame.allocated |= 1u << index;
    check(ndim >= 0 && ndim <= max_dims && (ndim == 0 || sizes), backend_error, distribution, ": the kernel of ",
          call.name(), " asked for an output of ", ndim, " dimensions; there are at most ", max_dims);
    const std::span wanted(sizes, static_cast<size_t>(ndim));
    check_chosen_sizes(call, index, wanted);
    output.sizes = Dims(wanted);
    prepare_output(call, output);
    frame.outputs[index] = describe(*output.tensor.get());
  });
}

int32_t allocate_workspace(cb_call* kernel_call, uint64_t bytes, cb_memory* result) {
  *result = {};
  return serve(kernel_call, [&](Frame& frame) {
    if (bytes == 0) return;
    frame.workspaces.emplace_back(make_storage(frame.device, bytes));
    *result = memory_at({*frame.workspaces.back(), 0});
  });
}

int32_t is_cancelled(cb_call* kernel_call) {
  // Without the GIL: Python runs handlers on one thread only.
  if (!may_handle_signals()) return 0;
  return serve(kernel_call,
               [](Frame&) {
                 if (PyErr_CheckSignals() < 0) throw PythonError();
               }) == CB_OK
             ? 0
             : 1;
}

}  // namespace candelabra
