#include "dispatch/outputs.hpp"

#include "memory/copy_on_write.hpp"
#include "operators/operator.hpp"

namespace candelabra {

namespace {

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
  check(!may_overlap_itself(tensor), PyExc_RuntimeError, call.title(),
        "(): unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please "
        "clone() the "
        "tensor before performing the operation.");
}

// Throws where out= shares memory with an input in a way that the operator does not allow.
void check_memory(const Call& call, const TensorObject& out) {
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor()) {
      check_out_memory(call.title(), call.op.out_memory, out, *argument.tensor);
    } else if (argument.kind == ArgumentKind::Tensors) {
      for (int k = 0; k < argument.count; ++k) {
        if (argument.tensors[k]) check_out_memory(call.title(), call.op.out_memory, out, *argument.tensors[k]);
      }
    }
  }
}

// `dtype=` says what an out= has to be.
void check_requested_dtype(const Call& call, Dtype result, Dtype out) {
  for (int i = 0; result != out && i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    const bool is_requested = argument.kind == ArgumentKind::Dtype && argument.object && argument.object != Py_None;
    check(!is_requested, PyExc_RuntimeError, call.title(), "(): Expected out tensor to have dtype ", name(result),
          ", but got ", name(out), " instead: dtype= and out= are given");
  }
}

// Whether the kernel must write to a temporary tensor: the caller's has another dtype than the
// result, is read by the kernel too, or is not contiguous, which only elementwise kernels accept.
bool needs_temporary(Call& call, const Output& output) {
  TensorObject& given = *output.given;
  if (given.dtype != output.dtype) {
    check_out_dtype(call.title(), output.dtype, given.dtype);
    return true;
  }
  if (call.op.returns_self) return false;
  if (call.kernel().flags & CB_KERNEL_CONTIGUOUS && !given.contiguous) return true;
  return (!call.op.elementwise && !given.contiguous) || shares_memory_with_arguments(call, &given, 0);
}

}  // namespace

void prepare_output(Call& call, Output& output) {
  if (!output.given) {
    output.tensor = output.strides ? empty_strided(output.sizes, *output.strides, output.dtype, call.device)
                                   : empty(output.sizes, output.dtype, call.device);
    return;
  }
  TensorObject& given = *output.given;
  make_writable(given.storage);
  if (call.op.returns_self) {
    check(given.sizes == output.sizes, PyExc_RuntimeError, call.title(), "(): output with shape ", shown(given.sizes),
          " doesn't match the broadcast shape ", shown(output.sizes));
  } else {
    check(given.device() == call.device, PyExc_RuntimeError, call.title(),
          "(): Expected all tensors to be on the same device, but out= is on ", to_text(given.device()),
          " and the arguments are on ", to_text(call.device));
    check_out_dtype(call.title(), output.dtype, given.dtype);
    check_requested_dtype(call, output.dtype, given.dtype);
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
  if (resize) resize_output(call.title(), given, output.sizes);
  check_writable(call, given);
  output.tensor = TensorRef::borrow(&given);
}

void check_chosen_sizes(const Call& call, int index, std::span<const int64_t> sizes) {
  const Output& output = call.outputs[index];
  const std::string& distribution = device_type(call.device).distribution;
  check(std::ranges::none_of(sizes, [](int64_t size) { return size < 0; }), backend_error, distribution,
        ": the kernel of ", call.name(), " asked for an output of sizes ", shown(sizes));
  if (call.op.tags & tag_custom) return;
  // The shape rule declares 0 for sizes that depend on data. The core relies on the others.
  const auto fits = [](int64_t size, int64_t declared) { return declared == 0 || size == declared; };
  check(std::ranges::equal(sizes, output.sizes, fits), backend_error, distribution, ": the kernel of ", call.name(),
        " asked for an output of sizes ", shown(sizes), "; the operator declares ", shown(output.sizes),
        ", where 0 is any size");
}

void finish_output(const Call& call, Output& output) {
  if (!output.given || output.tensor.get() == output.given) return;
  if (!call.op.returns_self) resize_output(call.title(), *output.given, output.tensor->sizes);
  copy_into(output.given, output.tensor.get());
  output.tensor = TensorRef::borrow(output.given);
}

void resize_output(const char* operator_name, TensorObject& out, std::span<const int64_t> sizes) {
  if (std::ranges::equal(std::span<const int64_t>(out.sizes), sizes)) return;
  if (out.numel != 0) {
    std::string message =
        text("An output with one or more elements was resized since it had shape ", shown(out.sizes),
             ", which does not match the required output shape ", to_text(sizes), " of ", operator_name,
             "(). The out tensor will be resized. You can explicitly reuse an out tensor t by resizing it, inplace, to "
             "zero elements.");
    warn(message);
  }
  const int64_t bytes = product(sizes) * itemsize(out.dtype);
  int64_t offset = out.offset;
  // A view stays in the memory of its base where that has room.
  if (static_cast<size_t>(offset * itemsize(out.dtype) + bytes) > out.storage->bytes) {
    Storage* old = std::exchange(out.storage, make_storage(out.device(), static_cast<size_t>(bytes)));
    release(old);
    offset = 0;
  }
  set_geometry(out, Dims(sizes), contiguous_strides(sizes), offset);
}

}  // namespace candelabra
