// Runs a parsed call: device, shape rule, memory, kernel.
#include <algorithm>

#include "device/random.hpp"
#include "dispatch/kernel_call.hpp"
#include "dispatch/outputs.hpp"
#include "dispatch/python_kernel.hpp"
#include "operators/operator.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

void refuse_shared_memory(const TensorObject& argument, const TensorObject& self) {
  const bool is_same = argument.numel > 0 && argument.data() == self.data() && argument.sizes == self.sizes;
  check(!is_same && !share_memory_partly(argument, self), PyExc_RuntimeError, overlaps_written);
}

// An in-place call reads its other arguments while it writes self. An argument must not share
// memory with self or, for elementwise operators, must be the same elements. Operators that write
// at indices refuse such arguments, as in PyTorch.
void separate_arguments(Call& call, TensorObject* self) {
  const bool writes_at_indices = !call.op.elementwise && call.op.functional->out_memory == OutMemory::Whole;
  for (int i = 1; i < call.argument_count; ++i) {
    Argument& argument = call[i];
    if (writes_at_indices && argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) {
        const TensorObject* const index = argument.tensors[k];
        if (index && index->storage == self->storage) refuse_shared_memory(*index, *self);
      }
    }
    if (!argument.is_tensor() || argument.tensor->storage != self->storage) continue;
    if (call.op.elementwise) {
      check(!share_memory_partly(*argument.tensor, *self), PyExc_RuntimeError, overlaps_written);
    } else if (writes_at_indices) {
      refuse_shared_memory(*argument.tensor, *self);
    } else {
      argument.tensor = call.keep(clone(argument.tensor, MemoryFormat::Preserve));
    }
  }
}

}  // namespace

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

GeneratorState take_random_numbers(Call& call) {
  GeneratorState& state = generator_state(call.generator, call.device);
  GeneratorState taken = state;
  int64_t count = call.output_count > 0 ? std::max<int64_t>(product(call.outputs[0].sizes), 1) : 1;
  state.offset += static_cast<uint64_t>(count + 1) / 2;
  return taken;
}

void return_random_numbers(Call& call, GeneratorState taken) {
  generator_state(call.generator, call.device) = taken;
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

// Makes the kernel see argument i without gaps and without repeated elements.
void make_dense(Call& call, int i) {
  Argument& argument = call[i];
  if (argument.kind == ArgumentKind::Tensors) {
    for (int k = 0; k < argument.count; ++k)
      if (argument.tensors[k]) argument.tensors[k] = call.keep(contiguous(argument.tensors[k]));
    return;
  }
  if (!argument.is_tensor()) return;
  if (argument.descriptor) {
    const cb_tensor& seen = *argument.descriptor;
    const auto ndim = static_cast<size_t>(seen.ndim);
    TensorObject* tensor = argument.tensor;
    argument.tensor = call.keep(make_tensor(retain(tensor->storage), tensor->dtype, Dims(std::span(seen.sizes, ndim)),
                                            Dims(std::span(seen.strides, ndim)), tensor->offset));
    argument.descriptor = nullptr;
  }
  call.make_contiguous(i);
}

// Makes all tensors contiguous for a kernel that accepts no others.
void make_all_dense(Call& call) {
  for (int i = 0; i < call.argument_count; ++i) make_dense(call, i);
  for (int k = 0; k < call.output_count; ++k) call.outputs[k].strides.reset();
  if (!call.op.returns_self || call.outputs[0].given->contiguous) return;
  // The kernel changes a contiguous copy of self in place; finish_output() copies it back.
  Argument& self = call[Operator::self_position];
  if (self.tensor == call.outputs[0].given) self.tensor = call.keep(clone(self.tensor, MemoryFormat::Contiguous));
  call.outputs[0].tensor = TensorRef::borrow(self.tensor);
}

[[noreturn]] void refuse_without_kernel(const Call& call) {
  const DeviceType& type = device_type(call.device);
  if (type.has_cpu_fallback) throw Declined();
  const std::string remedy = type.name == "cpu" ? ""
                                                : text(", and candelabra.backends.cpu_fallback('", type.name,
                                                       "') computes such operators on the CPU");
  raise(PyExc_NotImplementedError, "the operator ", call.name(), " has no kernel on device ", to_text(call.device),
        " (", type.distribution, "), and no decomposition; python -m candelabra.backends lists what there is", remedy);
}

// With the CPU fallback, a Python kernel that raises NotImplementedError declines the call.
void run_python_kernel(Call& call, const Kernel& kernel) {
  if (!device_type(call.device).has_cpu_fallback) return call_python_kernel(call, kernel.python);
  const bool is_random = call.op.tags & tag_random;
  const GeneratorState before = is_random ? generator_state(call.generator, call.device) : GeneratorState{};
  try {
    call_python_kernel(call, kernel.python);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_NotImplementedError)) throw;
    PyErr_Clear();
    if (is_random) return_random_numbers(call, before);
    throw Declined();
  }
}

// Whether a device type has reached the tier "required": decompositions end in its kernels.
bool has_required_tier(int type) {
  return std::ranges::all_of(all_operators(), [&](const Operator* op) {
    return !(op->tags & tag_required) || op->kernels[static_cast<size_t>(type)].there();
  });
}

// Whether a device type has a kernel for every primitive. What such a kernel declines is an error.
bool has_all_kernels(int type) {
  constexpr uint32_t no_kernel = tag_composite | tag_core | tag_view;
  return std::ranges::all_of(all_operators(), [&](const Operator* op) {
    return (op->tags & no_kernel) || op->kernels[static_cast<size_t>(type)].there();
  });
}

// The operator of an in-place variant, or the operator itself.
const Operator& base_of(const Call& call) {
  return call.op.functional ? *call.op.functional : call.op;
}

// Makes the tensor that a decomposition returned the output, or copies it to the output's memory.
void take_result(Call& call, Output& output, PyObject* returned) {
  check(is_tensor(returned), PyExc_TypeError, call.name(), "(): the decomposition returned ",
        Py_TYPE(returned)->tp_name, " and not a Tensor");
  TensorObject* result = as_tensor(returned);
  if (call.op.tags & tag_data_dependent) output.sizes = result->sizes;
  const bool is_new = result->storage->references == 1 && Py_REFCNT(returned) == 1 && result->offset == 0;
  const bool has_form = result->dtype == output.dtype && result->sizes == output.sizes &&
                        (output.strides ? result->strides == *output.strides : result->contiguous);
  if (!output.given && !output.tensor && is_new && has_form) {
    output.tensor = TensorRef::borrow(result);
  } else {
    if (!output.tensor) prepare_output(call, output);
    // Kernels see a dimension of size 1 in tensors without dimensions; the result may have it.
    const bool is_reshaped = !(result->sizes == output.sizes) && result->numel == product(output.sizes);
    const TensorRef dense = is_reshaped ? contiguous(result) : TensorRef::borrow(result);
    const TensorRef shaped = is_reshaped
                                 ? make_view(dense.get(), output.sizes, contiguous_strides(output.sizes), dense->offset)
                                 : TensorRef::borrow(result);
    copy_into(output.tensor.get(), shaped.get());
  }
  finish_output(call, output);
}

// Gives large outputs their memory before the decomposition runs: sizes beyond the memory of the
// device are refused at once, as for a kernel.
void prepare_large_outputs(Call& call) {
  constexpr double large = 1 << 30;
  if (call.op.tags & tag_data_dependent) return;
  for (int k = 0; k < call.output_count; ++k) {
    Output& output = call.outputs[k];
    double bytes = static_cast<double>(itemsize(output.dtype));
    for (const int64_t size : output.sizes) bytes *= static_cast<double>(size);
    if (!output.tensor && bytes >= large) prepare_output(call, output);
  }
}

// Computes the call by the decomposition of the operator. Where this returns NotImplemented, the
// CPU fallback is next.
void compute_by_decomposition(Call& call) {
  prepare_large_outputs(call);
  const bool is_random = call.op.tags & tag_random;
  const GeneratorState before = is_random ? generator_state(call.generator, call.device) : GeneratorState{};
  Ref<> results = call_decomposition(call, base_of(call).decomposition);
  if (results.get() == Py_NotImplemented) {
    if (is_random) return_random_numbers(call, before);
    if (device_type(call.device).has_cpu_fallback) throw Declined();
    raise_not_implemented(call);
  }
  if (call.output_count == 0) return;
  if (call.output_count == 1) {
    return take_result(call, call.outputs[0], results.get());
  }
  check(PyTuple_Check(results.get()) && PyTuple_GET_SIZE(results.get()) == call.output_count, PyExc_TypeError,
        call.name(), "(): the decomposition did not return ", call.output_count, " tensors");
  for (int k = 0; k < call.output_count; ++k) {
    if (!call.outputs[k].scratch) take_result(call, call.outputs[k], PyTuple_GET_ITEM(results.get(), k));
  }
}

// Allocates the results and calls the kernel.
void compute_by_kernel(Call& call) {
  Operator& op = call.op;
  const Kernel& kernel = call.kernel();
  if (kernel.is_restricted) [[unlikely]]
    check_supported(call, kernel);
  if (kernel.flags & CB_KERNEL_CONTIGUOUS) [[unlikely]]
    make_all_dense(call);
  if (!(op.tags & tag_data_dependent)) {
    for (int k = 0; k < call.output_count; ++k) {
      if (call.outputs[k].tensor || (call.first_alone && k > 0 && prepare_scratch(call, kernel, call.outputs[k])))
        continue;
      prepare_output(call, call.outputs[k]);
    }
  }
  if (kernel.compiled == compute_nothing) [[unlikely]] {
    refuse_recording("tensors on the device meta have no values");
    check(!(op.tags & tag_data_dependent), PyExc_NotImplementedError, call.name(),
          "(): the shape of the result depends on the data, and tensors on the device meta have none");
  } else if (kernel.compiled) [[likely]] {
    call_kernel(call, kernel);
  } else {
    run_python_kernel(call, kernel);
  }
  for (int k = 0; k < call.output_count; ++k) {
    if (call.outputs[k].scratch) continue;
    check(static_cast<bool>(call.outputs[k].tensor), backend_error, device_type(call.device).distribution,
          ": the kernel of ", call.name(), " asked for no memory for output ", k, ": allocate_output() gives it");
    finish_output(call, call.outputs[k]);
  }
}

void compute(Call& call) {
  const Kernel& kernel = call.kernel();
  if (!kernel.there()) [[unlikely]] {
    if (!may_decompose(call)) refuse_without_kernel(call);
    return compute_by_decomposition(call);
  }
  try {
    compute_by_kernel(call);
  } catch (const Declined&) {
    if ((call.op.tags & tag_composite) || !may_decompose(call)) throw;
    compute_by_decomposition(call);
  }
}

}  // namespace

bool may_decompose(const Call& call) {
  const int type = call.device.type;
  if (call.kernel().there() && has_all_kernels(type)) return false;
  if (device_type(call.device).has_cpu_fallback && !has_required_tier(type)) return false;
  // Only devices without some kernel pay for the import.
  static constinit LookedUpOnce decompositions;
  decompositions.get([] { return owned(PyImport_ImportModule("candelabra.decompositions")); });
  return base_of(call).decomposition != nullptr;
}

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
      if (op.tags & tag_nondifferentiable) output.tensor->unrecorded_view = output.tensor->one_of_views = false;
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
