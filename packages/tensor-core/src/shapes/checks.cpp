#include "shapes/checks.hpp"

#include "tensor/layout_order.hpp"

#include <cmath>
#include <cstdint>

#include "operators/operator.hpp"

namespace candelabra::shapes {

namespace {

// Strides of the result, in the order of dimensions that PyTorch's TensorIterator chooses. Two
// dimensions are ordered by their strides in the first operand that broadcasts neither of them.
std::optional<Dims> common_layout(Call& call, std::span<const int> operands, const Dims& sizes) {
  const int ndim = sizes.size();
  if (ndim < 2) return std::nullopt;
  const TensorObject* first = nullptr;
  bool equal = true;
  for (int i : operands) {
    if (!call[i].is_tensor()) continue;
    const TensorObject& tensor = call.tensor(i);
    if (!first) first = &tensor;
    equal = equal && tensor.sizes == sizes && tensor.strides == first->strides;
  }
  if (equal && first && is_dense_and_non_overlapping(*first)) return first->strides;

  auto stride_of = [&](const TensorObject& tensor, int dim) -> int64_t {
    const int own = dim - (ndim - tensor.ndim());
    return own < 0 || tensor.sizes[own] != sizes[dim] ? 0 : tensor.strides[own];
  };
  // Positive if dimension a is outside b, negative if inside, 0 if no operand decides.
  auto order = [&](int a, int b) {
    for (int i : operands) {
      if (!call[i].is_tensor()) continue;
      const int64_t a_stride = stride_of(call.tensor(i), a), b_stride = stride_of(call.tensor(i), b);
      if (a_stride == 0 || b_stride == 0) continue;
      if (a_stride != b_stride) return a_stride > b_stride ? 1 : -1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  return strides_in_order(sizes, order);
}

}  // namespace

std::string_view base_name(const Call& call) {
  return call.op.title;
}

const char* cpp_type_name(Dtype dtype) {
  static constexpr const char* names[dtype_count] = {"bool",
                                                     "unsigned char",
                                                     "signed char",
                                                     "short",
                                                     "int",
                                                     "long",
                                                     "c10::Half",
                                                     "c10::BFloat16",
                                                     "float",
                                                     "double",
                                                     "c10::complex<float>",
                                                     "c10::complex<double>",
                                                     "unsigned short",
                                                     "unsigned int",
                                                     "unsigned long",
                                                     "c10::Float8_e4m3fn",
                                                     "c10::Float8_e5m2",
                                                     "c10::Float8_e4m3fnuz",
                                                     "c10::Float8_e5m2fnuz",
                                                     "c10::Float8_e8m0fnu",
                                                     "c10::complex<c10::Half>"};
  return names[static_cast<int>(dtype)];
}

void not_implemented(const Call& call, Dtype dtype) {
  if (call.op.elementwise) {  // as in PyTorch, errors in shapes and in the dtype of out= come first
    const TensorObject* given = call.outputs[0].given;
    Dims sizes;
    for (int i = 0; i < call.argument_count; ++i) {
      if (call.arguments[i].is_tensor()) sizes = broadcast_sizes(call.title(), sizes, call.arguments[i].tensor->sizes);
    }
    check(!given || can_cast(dtype, given->dtype), PyExc_RuntimeError, "result type ", info(dtype).type_name,
          " can't be cast to the desired output type ", given ? info(given->dtype).type_name : "");
  }
  raise(PyExc_NotImplementedError, '"', base_name(call), "\" not implemented for '", info(dtype).type_name, "'");
}

static double largest_finite(Dtype dtype) {
  switch (dtype) {
    case Dtype::Float16:
      return 65504.0;
    case Dtype::BFloat16:
      return 0x1.fep127;
    case Dtype::Float8E5M2:  // as in PyTorch, other float8 dtypes and complex32 refuse no number
      return 57344.0;
    case Dtype::Float32:
    case Dtype::Complex64:
      return 0x1.fffffep127;
    default:
      return 0x1.fffffffffffffp1023;
  }
}

void check_number_fits(const cb_scalar& number, Dtype dtype, bool exactly) {
  bool fits = number.kind != CB_SCALAR_COMPLEX || is_complex(dtype);
  if (fits && exactly && is_integral(dtype) && dtype != Dtype::Bool) {
    const int bits = 8 * itemsize(dtype);
    const bool is_signed = info(dtype).is_signed;
    if (number.kind == CB_SCALAR_FLOAT) {
      const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
      // False for NaN. A float64 cannot hold 2^63 - 1 or 2^64 - 1, so 64-bit limits are exclusive.
      fits = number.re >= (is_signed ? -limit : 0) && (bits == 64 ? number.re < limit : number.re <= limit - 1);
    } else if (number.flags & CB_SCALAR_UNSIGNED) {
      fits = dtype == Dtype::UInt64;
    } else if (bits < 64) {
      const int64_t limit = is_signed ? int64_t{1} << (bits - 1) : int64_t{1} << bits;
      // Unsigned dtypes accept negative numbers: -1 is 255 as uint8.
      fits = number.i >= -limit + (is_signed ? 0 : 1) && number.i < limit;
    }
  }
  if (fits && exactly && (is_floating(dtype) || is_complex(dtype))) {
    const double limit = largest_finite(dtype);
    const auto overflows = [&](double part) { return std::isfinite(part) && std::abs(part) > limit; };
    if (number.kind == CB_SCALAR_FLOAT || number.kind == CB_SCALAR_COMPLEX) {
      fits = !overflows(number.re) && !(number.kind == CB_SCALAR_COMPLEX && overflows(number.im));
    } else if (number.kind == CB_SCALAR_INT) {
      fits = !overflows(number.flags & CB_SCALAR_UNSIGNED ? 0x1p64 : static_cast<double>(number.i));
    }
  }
  const char* type = dtype == Dtype::UInt8   ? "uint8_t"
                     : dtype == Dtype::Int8  ? "int8_t"
                     : dtype == Dtype::Int16 ? "int16_t"
                     : dtype == Dtype::Int64 ? "int64_t"
                                             : cpp_type_name(dtype);
  check(fits, PyExc_RuntimeError, "value cannot be converted to type ", type, " without overflow");
}

void check_factor(const Call& call, const char* factor_name, const cb_scalar& factor, Dtype dtype) {
  check(!(factor.flags & CB_SCALAR_UNSIGNED) || !is_integral(dtype) || dtype == Dtype::UInt64, PyExc_RuntimeError,
        "value cannot be converted to type ", cpp_type_name(dtype), " without overflow");
  if (factor.kind == CB_SCALAR_INT || is_complex(dtype)) return;
  check(factor.kind != CB_SCALAR_BOOL || dtype == Dtype::Bool, PyExc_RuntimeError, "Boolean ", factor_name,
        " only supported for Boolean results.");
  check(factor.kind != CB_SCALAR_FLOAT || is_floating(dtype), PyExc_RuntimeError,
        "For integral input tensors, argument ", factor_name, " must not be a floating point number.");
  check(factor.kind != CB_SCALAR_COMPLEX, PyExc_RuntimeError, base_name(call),
        "(): For non-complex input tensors, argument ", factor_name, " must not be a complex number.");
}

uint64_t dim_set(std::span<const int64_t> dims, int ndim) {
  uint64_t set = 0;
  for (int64_t dim : dims) {
    const int wrapped = wrap_dim(dim, ndim);
    check(!(set >> wrapped & 1), PyExc_RuntimeError, "dim ", wrapped, " appears multiple times in the list of dims");
    set |= uint64_t{1} << wrapped;
  }
  return ndim == 0 ? 0 : set;
}

Dtype promote_dtypes(Call& call, std::span<const int> operands) {
  Promotion promotion;
  for (int i : operands) {
    const Argument& argument = call[i];
    if (argument.is_tensor()) {
      promotion.add_tensor(argument.tensor->dtype, argument.tensor->ndim() == 0);
    } else if (argument.kind == ArgumentKind::Number) {
      promotion.add_number(argument.scalar.kind);
    }
  }
  return promotion.result();
}

Output& combine(Call& call, std::span<const int> operands, Dtype result) {
  const TensorObject* first = nullptr;
  Dims sizes;
  bool contiguous = true, same = true;
  for (int i : operands) {
    if (!call[i].is_tensor()) continue;
    const TensorObject& tensor = call.tensor(i);
    contiguous = contiguous && tensor.contiguous;
    if (!first) {
      first = &tensor;
      sizes = tensor.sizes;
    } else if (!(tensor.sizes == sizes)) {
      sizes = broadcast_sizes(call.title(), sizes, tensor.sizes);
      same = false;
    }
  }
  Output& output = call.add_output(result, std::move(sizes));
  for (int i : operands) {
    const Argument& argument = call[i];
    if (argument.is_tensor() ? !same && !(argument.tensor->sizes == output.sizes)
                             : argument.kind == ArgumentKind::Number) {
      call.broadcast(i, output.sizes);
    }
  }
  // Row-major operands give a row-major result, even if some are broadcast.
  if (!contiguous && !output.given) output.strides = common_layout(call, operands, output.sizes);
  return output;
}

void unsqueeze_scalar(Call& call, int i) {
  static constexpr int64_t one = 1;
  const Argument& argument = call[i];
  if (argument.kind == ArgumentKind::Number || (argument.is_tensor() && argument.tensor->ndim() == 0)) {
    call.set_descriptor(i, {&one, 1}, {&one, 1});
  }
}

void make_layout(Call& call, int i, bool channels_last) {
  if (!channels_last) return call.make_contiguous(i);
  Argument& argument = call[i];
  const MemoryFormat format = argument.tensor->ndim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
  if (!is_in_format(*argument.tensor, format)) {
    argument.tensor = call.keep(candelabra::clone(argument.tensor, format));
    argument.descriptor = nullptr;
  }
}

void set_layout(Output& output, bool channels_last) {
  if (channels_last) output.strides = channels_last_strides(output.sizes);
}

void expand_list(Call& call, int i, int spatial, const char* list_name, const char* what) {
  const auto values = call.ints(i);
  if (static_cast<int>(values.size()) == spatial) return;
  check(values.size() == 1, PyExc_RuntimeError, base_name(call), "(): expected ", list_name,
        " to be a single integer value or a list of ", spatial, " values to match the ", what, " dimensions, but got ",
        list_name, "=", shown(values));
  call.set_ints(i, Dims(spatial, values[0]));
}

void check_magnitude(const Call& call, std::span<const int64_t> values, const char* list_name) {
  for (int64_t value : values) {
    check(value <= INT32_MAX && value >= INT32_MIN, PyExc_RuntimeError, base_name(call), "(): ", list_name, "=",
          shown(values), " is out of range");
  }
}

}  // namespace candelabra::shapes
