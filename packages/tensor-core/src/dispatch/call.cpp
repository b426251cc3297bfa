// The operations by which a shape rule changes the arguments of a call before the kernel sees them.
#include "dispatch/call.hpp"

#include "operators/operator.hpp"

namespace candelabra {

namespace {

// The strides of a number, or of a tensor expanded from one element.
constexpr int64_t zero_strides[max_dims] = {};

struct Geometry {
  std::span<const int64_t> sizes, strides;
  void* data;
};

Geometry kernel_geometry(const Argument& argument) {
  if (const cb_tensor* descriptor = argument.descriptor) {
    const auto count = static_cast<size_t>(descriptor->ndim);
    return {{descriptor->sizes, count}, {descriptor->strides, count}, descriptor->data};
  }
  const TensorObject& tensor = *argument.tensor;
  return {tensor.sizes, tensor.strides, tensor.data()};
}

}  // namespace

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
      if (op.kernel_table()[device.type].converts && is_complex(argument.tensor->dtype) <= is_complex(dtype)) return;
      argument.tensor = keep(convert_dtype(argument.tensor, dtype));
      argument.descriptor = nullptr;  // it describes the old memory
    }
    return;
  }
  if (argument.kind != ArgumentKind::Number) return;  // an optional argument that was not given
  void* element = arena.make<std::byte>(16);
  store_scalar(argument.scalar, dtype, element);
  argument.descriptor = arena.make<cb_tensor>(1);
  *argument.descriptor = {element,      zero_strides,    zero_strides, 1, 0, static_cast<int32_t>(dtype),
                          device.index, CB_TENSOR_NUMBER};
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
  const Geometry old = kernel_geometry(argument);
  const int added = ndim - static_cast<int>(old.sizes.size());
  check(added >= 0, PyExc_RuntimeError, name(), "(): a tensor of shape ", shown(old.sizes),
        " cannot be expanded to shape ", shown(sizes), ", which has fewer dimensions");
  int64_t* strides = arena.make<int64_t>(sizes.size());
  for (int d = 0; d < ndim; ++d) {
    const int64_t size = d < added ? 1 : old.sizes[d - added];
    check(size == sizes[d] || size == 1, PyExc_RuntimeError, name(), "(): The expanded size of the tensor (", sizes[d],
          ") must match the existing size (", size, ") at non-singleton dimension ", d,
          ".  Target sizes: ", shown(sizes), ".  Tensor sizes: ", shown(old.sizes));
    strides[d] = size != sizes[d] || d < added ? 0 : old.strides[d - added];
  }
  cb_tensor* descriptor = arena.make<cb_tensor>(1);
  *descriptor = {old.data,
                 arena.copy(sizes),
                 strides,
                 product(sizes),
                 ndim,
                 static_cast<int32_t>(argument.tensor->dtype),
                 argument.tensor->device().index,
                 0};
  argument.descriptor = descriptor;
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
  cb_tensor* descriptor = arena.make<cb_tensor>(1);
  *descriptor = {argument.tensor->data(),
                 arena.copy(sizes),
                 arena.copy(strides),
                 product(sizes),
                 static_cast<int32_t>(sizes.size()),
                 static_cast<int32_t>(argument.tensor->dtype),
                 argument.tensor->device().index,
                 0};
  argument.descriptor = descriptor;
}

Output& Call::add_output(Dtype dtype, Dims sizes) {
  Output& output = outputs[output_count++];
  output.dtype = dtype;
  output.sizes = std::move(sizes);
  return output;
}

}  // namespace candelabra
