// What shape rules do with a call: they change its arguments before the kernel sees them.
#include "dispatch/call.hpp"

#include "operators/operator.hpp"

namespace candelabra {

namespace {

// The strides of a number, or of a tensor expanded from one element.
constexpr int64_t zero_strides[max_dims] = {};

// What the kernel sees so far.
cb_tensor seen(const Argument& argument) {
  return argument.descriptor ? *argument.descriptor : describe(*argument.tensor);
}

}  // namespace

cb_tensor describe(const TensorObject& tensor) {
  const Storage& storage = *tensor.storage;
  cb_tensor result{};
  result.data = storage.is_addressable ? tensor.data() : nullptr;
  result.sizes = tensor.sizes.data();
  result.strides = tensor.strides.data();
  result.numel = tensor.numel;
  result.ndim = tensor.ndim();
  result.dtype = static_cast<int32_t>(tensor.dtype);
  result.device_index = storage.device.index;
  result.flags = storage.is_host_visible ? CB_TENSOR_HOST_VISIBLE : 0;
  result.storage = storage.handle;
  result.offset = static_cast<uint64_t>(tensor.offset * itemsize(tensor.dtype));
  result.memory_kind = storage.kind;
  return result;
}

const Kernel& Call::kernel() const {
  return op.kernel_table()[device.type];
}

const char* Call::name() const {
  return op.schema.name.c_str();
}

const char* Call::title() const {
  return op.message_name();
}

void Call::raise_not_tensor(int i) const {
  const Argument& argument = arguments[i];
  raise(PyExc_TypeError, name(), "(): argument '", op.schema.parameters[i].name, "' (position ", i + 1,
        ") must be Tensor, not ", argument.object ? Py_TYPE(argument.object)->tp_name : "None");
}

void Call::set_ints(int i, std::span<const int64_t> values) {
  Argument& argument = arguments[i];
  argument.kind = ArgumentKind::Ints;
  argument.count = static_cast<int32_t>(values.size());
  argument.ints = arena.copy(values);
}

void Call::set_int(int i, int64_t value) {
  arguments[i].kind = ArgumentKind::Int;
  arguments[i].i = value;
}

void Call::set_float(int i, double value) {
  arguments[i].kind = ArgumentKind::Float;
  arguments[i].f = value;
}

void Call::set_dtype(int i, Dtype dtype) {
  arguments[i].kind = ArgumentKind::Dtype;
  arguments[i].dtype = dtype;
}

void Call::convert(int i, Dtype dtype) {
  Argument& argument = arguments[i];
  if (argument.kind == ArgumentKind::Tensor) {
    if (argument.tensor->dtype != dtype) {
      // A converting kernel reads any dtype. convert_dtype() handles complex to real, because it
      // warns.
      if ((op.kernel_table()[device.type].flags & CB_KERNEL_CONVERTS) &&
          is_complex(argument.tensor->dtype) <= is_complex(dtype))
        return;
      argument.tensor = keep(convert_dtype(argument.tensor, dtype));
      argument.descriptor = nullptr;  // it describes the old memory
    }
    return;
  }
  if (argument.kind != ArgumentKind::Number) return;  // an optional argument that was not given
  void* element = arena.make<std::byte>(16);
  store_scalar(argument.scalar, dtype, element);
  cb_tensor& number = *(argument.descriptor = arena.make<cb_tensor>(1));
  number = {};
  number.data = element;
  number.sizes = number.strides = zero_strides;
  number.numel = 1;
  number.dtype = static_cast<int32_t>(dtype);
  number.device_index = device.index;
  number.flags = CB_TENSOR_NUMBER | CB_TENSOR_HOST_VISIBLE;
}

void Call::broadcast(int i, std::span<const int64_t> sizes) {
  Argument& argument = arguments[i];
  const int ndim = static_cast<int>(sizes.size());
  if (argument.kind == ArgumentKind::Number) {
    argument.descriptor->sizes = arena.copy(sizes);
    argument.descriptor->strides = zero_strides;
    argument.descriptor->ndim = ndim;
    argument.descriptor->numel = product(sizes);
    return;
  }
  const cb_tensor old = seen(argument);
  const int added = ndim - old.ndim;
  const std::span<const int64_t> old_sizes(old.sizes, static_cast<size_t>(old.ndim));
  check(added >= 0, PyExc_RuntimeError, name(), "(): a tensor of shape ", shown(old_sizes),
        " cannot be expanded to shape ", shown(sizes), ", which has fewer dimensions");
  int64_t* strides = arena.make<int64_t>(sizes.size());
  for (int d = 0; d < ndim; ++d) {
    const int64_t size = d < added ? 1 : old.sizes[d - added];
    check(size == sizes[d] || size == 1, PyExc_RuntimeError, name(), "(): The expanded size of the tensor (", sizes[d],
          ") must match the existing size (", size, ") at non-singleton dimension ", d,
          ".  Target sizes: ", shown(sizes), ".  Tensor sizes: ", shown(old_sizes));
    strides[d] = size != sizes[d] || d < added ? 0 : old.strides[d - added];
  }
  cb_tensor& descriptor = *(argument.descriptor = arena.make<cb_tensor>(1));
  descriptor = old;
  descriptor.sizes = arena.copy(sizes);
  descriptor.strides = strides;
  descriptor.numel = product(sizes);
  descriptor.ndim = ndim;
}

void Call::make_contiguous(int i) {
  Argument& argument = arguments[i];
  if (!argument.is_tensor() || argument.tensor->contiguous) return;
  argument.tensor = keep(contiguous(argument.tensor));
  argument.descriptor = nullptr;
}

void Call::set_descriptor(int i, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Argument& argument = arguments[i];
  if (argument.kind == ArgumentKind::Number) return broadcast(i, sizes);
  cb_tensor& descriptor = *(argument.descriptor = arena.make<cb_tensor>(1));
  descriptor = describe(*argument.tensor);
  descriptor.sizes = arena.copy(sizes);
  descriptor.strides = arena.copy(strides);
  descriptor.numel = product(sizes);
  descriptor.ndim = static_cast<int32_t>(sizes.size());
}

Output& Call::add_output(Dtype dtype, Dims sizes) {
  Output& output = outputs[output_count++];
  output.dtype = dtype;
  output.sizes = std::move(sizes);
  return output;
}

}  // namespace candelabra
