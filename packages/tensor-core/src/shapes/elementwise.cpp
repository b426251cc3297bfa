// Elementwise arithmetic, mathematics, comparison and logic.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

// bool, integer, floating, complex: comparable with enum cb_scalar_kind.
int category(Dtype dtype) {
  if (dtype == Dtype::Bool) return CB_SCALAR_BOOL;
  if (is_complex(dtype)) return CB_SCALAR_COMPLEX;
  return is_floating(dtype) ? CB_SCALAR_FLOAT : CB_SCALAR_INT;
}

// Beside half precisions, which are computed in single precision, a number of these operators keeps that precision, too: x * 0.1 is
// rounded once, as PyTorch's is.
Dtype number_dtype(const Call& call, Dtype compute) {
  if (compute != Dtype::Float16 && compute != Dtype::BFloat16) [[likely]]
    return compute;
  const std::string_view name = base_name(call);
  return name == "mul" || name == "div" || name == "lerp" ? Dtype::Float32 : compute;
}

// The common cases of two operands, which need neither promotion nor broadcasting: two row-major tensors of one shape and dtype,
// or one and a number of no higher category. Returns the tensor whose sizes and dtype the result has, else null.
TensorObject* quick_pair(Call& call) {
  Argument &a = call[0], &b = call[1];
  if (a.is_tensor() && b.is_tensor()) {
    TensorObject *x = a.tensor, *y = b.tensor;
    return x->dtype == y->dtype && x->contiguous && y->contiguous && x->sizes == y->sizes ? x : nullptr;
  }
  const int number = a.is_tensor() ? 1 : 0;
  TensorObject* tensor = a.is_tensor() ? a.tensor : b.is_tensor() ? b.tensor : nullptr;
  if (!tensor || !tensor->contiguous || category(tensor->dtype) < call[number].scalar.kind) return nullptr;
  call.convert(number, number_dtype(call, tensor->dtype));
  call.broadcast(number, tensor->sizes);
  return tensor;
}

// Converts the two operands to one dtype, broadcasts them, and adds an output of the dtype `result`.
void pair(Call& call, Dtype compute, Dtype result) {
  for (int i : {0, 1}) call.convert(i, call[i].is_tensor() ? compute : number_dtype(call, compute));
  combine(call, {0, 1}, result);
}

Dtype floating_or_default(Dtype dtype) {
  return is_integral(dtype) ? default_dtype() : dtype;
}

void check_unary(Call& call, Dtype dtype) {
  const std::string_view name = base_name(call);
  const bool rounds = name == "floor" || name == "ceil" || name == "trunc" || name == "round" || name == "frac";
  if (is_complex(dtype)) {
    check(name != "sign", PyExc_NotImplementedError,
          "Unlike NumPy, sign() is not intended to support complex numbers. Please use sgn() instead.");
    check(name != "relu", PyExc_NotImplementedError, "relu is not supported for complex types");
    check(!rounds, PyExc_NotImplementedError, name, " is not supported for complex inputs");
    if (name == "bitwise_not" || name == "bernoulli") not_implemented(call, dtype);
    return;
  }
  if (dtype == Dtype::Bool) {
    check(name != "neg", PyExc_RuntimeError,
          "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
          "`logical_not()` operator instead.");
    check(name != "relu", PyExc_RuntimeError, "Boolean inputs not supported for relu");
    if (rounds) not_implemented(call, dtype);
  }
  if (name == "frac" || name == "bernoulli" || (name == "round" && call.integer(1) != 0)) not_implemented(call, dtype);
}

void check_binary(Call& call, Dtype dtype) {
  const std::string_view name = base_name(call);
  if (name == "pow" && is_integral(dtype)) {
    const Argument& exponent = call[1];
    check(exponent.is_tensor() || exponent.scalar.i >= 0, PyExc_RuntimeError,
          "Integers to negative integer powers are not allowed.");
    // To a number, either power is one that every dtype has: ones, or the tensor itself.
    if (dtype == Dtype::Bool && (exponent.is_tensor() || !call[0].is_tensor())) not_implemented(call, dtype);
  }
  if (name == "heaviside") {
    check(!is_complex(dtype), PyExc_RuntimeError, "heaviside is not yet implemented for complex tensors.");
    check(call.tensor(0).dtype == call.tensor(1).dtype, PyExc_RuntimeError,
          "heaviside is not yet implemented for tensors with different dtypes.");
  }
  if (is_complex(dtype)) {
    for (std::string_view ordered : {"maximum", "minimum", "fmax", "fmin"}) {
      check(name != ordered, PyExc_RuntimeError, name, " not implemented for complex tensors.");
    }
    if (name == "floor_divide" || name == "remainder" || name == "fmod") not_implemented(call, dtype);
  }
}

bool is_bool(const Argument& argument) {
  return argument.is_tensor() ? argument.tensor->dtype == Dtype::Bool : argument.scalar.kind == CB_SCALAR_BOOL;
}

void check_alpha(Call& call, Dtype dtype) {
  const bool booleans = is_bool(call[0]) || is_bool(call[1]);
  if (booleans && base_name(call) != "add") {
    check(
        !(is_bool(call[0]) && is_bool(call[1])), PyExc_RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
    raise(PyExc_RuntimeError,
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
          "`logical_not()` operator instead.");
  }
  check_factor(call, "alpha", call[2].scalar, dtype);
}

void check_comparison(Call& call, Dtype dtype) {
  const std::string_view name = base_name(call);
  for (std::string_view ordering : {"lt", "le", "gt", "ge"}) {
    check(name != ordering, PyExc_NotImplementedError, '"', name, "\" not implemented for '", info(dtype).type_name, "'");
  }
}

void check_condition(const Call& call) {
  const Argument& condition = call.arguments[0];
  check(condition.is_tensor(), PyExc_TypeError, "where(): argument 'condition' (position 1) must be Tensor, not ",
        condition.object ? Py_TYPE(condition.object)->tp_name : "number");
  const Dtype dtype = condition.tensor->dtype;
  check(dtype == Dtype::Bool || dtype == Dtype::UInt8, PyExc_RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ", info(dtype).type_name);
}

}  // namespace

// ---- one argument

void unary(Call& call) {
  Dtype dtype = call.tensor(0).dtype;
  if (!is_floating(dtype)) {
    check_unary(call, dtype);
    if (dtype == Dtype::Bool && base_name(call) == "square") call.convert(0, dtype = Dtype::Int64);  // as pow(self, 2)
  } else if (base_name(call) == "bitwise_not") {
    not_implemented(call, dtype);
  }
  combine(call, {0}, dtype);
}

void unary_float(Call& call) {
  const Dtype dtype = floating_or_default(call.tensor(0).dtype);
  call.convert(0, dtype);
  combine(call, {0}, dtype);
}

void unary_real(Call& call) {
  const Dtype dtype = call.tensor(0).dtype;
  check(!(call.in_place && is_complex(dtype)), PyExc_RuntimeError, "In-place ", base_name(call),
        " is not supported for complex tensors.");
  if (dtype == Dtype::Bool) not_implemented(call, dtype);
  combine(call, {0}, real_of(dtype));
}

void unary_angle(Call& call) {
  const Dtype dtype = floating_or_default(call.tensor(0).dtype);
  call.convert(0, dtype);
  combine(call, {0}, real_of(dtype));
}

void unary_bool(Call& call) {
  if (is_complex(call.tensor(0).dtype)) {
    const std::string_view name = base_name(call);
    check(name != "isposinf" && name != "isneginf", PyExc_RuntimeError, name, " does not support complex inputs.");
    check(name != "signbit", PyExc_NotImplementedError, "signbit is not implemented for complex tensors.");
  }
  combine(call, {0}, Dtype::Bool);
}

// ---- two arguments

void complex(Call& call) {
  const Dtype first = call.tensor(0).dtype, second = call.tensor(1).dtype;
  check(is_floating(first) && is_floating(second) && first != Dtype::BFloat16 && second != Dtype::BFloat16, PyExc_RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got ", info(first).type_name, " and ",
        info(second).type_name);
  check(first == second, PyExc_RuntimeError, "Expected object of scalar type ", info(first).type_name, " but got scalar type ",
        info(second).type_name, " for second argument");
  if (first == Dtype::Float16) not_implemented(call, first);  // there is no complex dtype of that precision
  combine(call, {0, 1}, complex_of(first));
}

void binary(Call& call) {
  if (const TensorObject* like = quick_pair(call)) [[likely]] {
    if (!is_floating(like->dtype)) check_binary(call, like->dtype);
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promoted(call, {0, 1});
  check_binary(call, dtype);
  pair(call, dtype, dtype);
}

void binary_alpha(Call& call) {
  if (const TensorObject* like = quick_pair(call)) [[likely]] {
    if (!is_floating(like->dtype) || call[2].scalar.kind != CB_SCALAR_INT || is_bool(call[0]) || is_bool(call[1])) {
      check_alpha(call, like->dtype);
    }
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promoted(call, {0, 1});
  check_alpha(call, dtype);
  pair(call, dtype, dtype);
}

void binary_float(Call& call) {
  const TensorObject* like = quick_pair(call);
  if (like && !is_integral(like->dtype)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promoted(call, {0, 1});
  const std::string_view name = base_name(call);
  if (is_integral(dtype) && (name == "hypot" || name == "logaddexp" || name == "logaddexp2" || name == "nextafter")) {
    not_implemented(call, dtype);
  }
  pair(call, floating_or_default(dtype), floating_or_default(dtype));
}

void binary_integer(Call& call) {
  const TensorObject* like = quick_pair(call);
  const Dtype dtype = like ? like->dtype : promoted(call, {0, 1});
  if (!is_integral(dtype) || (dtype == Dtype::Bool && base_name(call).ends_with("shift"))) not_implemented(call, dtype);
  if (like) {
    call.add_output(dtype, like->sizes);
  } else {
    pair(call, dtype, dtype);
  }
}

void divide(Call& call) {
  const Argument& rounding = call[2];
  if (rounding.given()) {
    const std::string_view mode = rounding.string;
    check(mode == "floor" || mode == "trunc", PyExc_RuntimeError,
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
  }
  const TensorObject* like = quick_pair(call);
  if (like && is_floating(like->dtype)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  Dtype dtype = like ? like->dtype : promoted(call, {0, 1});
  if (!rounding.given()) {
    dtype = floating_or_default(dtype);
  } else if (is_complex(dtype) || dtype == Dtype::Bool) {
    not_implemented(call, dtype);
  }
  pair(call, dtype, dtype);
}

void compare(Call& call) {
  if (const TensorObject* like = quick_pair(call)) [[likely]] {
    if (is_complex(like->dtype)) check_comparison(call, like->dtype);
    call.add_output(Dtype::Bool, like->sizes);
    return;
  }
  const Dtype dtype = promoted(call, {0, 1});
  if (is_complex(dtype)) check_comparison(call, dtype);
  pair(call, dtype, Dtype::Bool);
}

// ---- three arguments

void where(Call& call) {
  check_condition(call);
  const Dtype dtype = promoted(call, {1, 2});
  for (int i : {1, 2}) {
    // Half precisions take infinity for what is beyond them.
    const bool exactly = is_integral(dtype) || itemsize(dtype) > 2;
    if (call[i].kind == ArgumentKind::Number) check_number_fits(call[i].scalar, dtype, exactly);
  }
  call.convert(0, Dtype::Bool);
  call.convert(1, dtype);
  call.convert(2, dtype);
  combine(call, {0, 1, 2}, dtype);
}

void clamp(Call& call) {
  check(call[1].given() || call[2].given(), PyExc_RuntimeError, "clamp(): At least one of 'min' or 'max' must not be None");
  const Dtype dtype = promoted(call, {0, 1, 2});
  check(!is_complex(dtype), PyExc_NotImplementedError, "clamp is not supported for complex types");
  if (dtype == Dtype::Bool) not_implemented(call, dtype);
  for (int i : {0, 1, 2}) {
    if (i > 0 && call[i].kind == ArgumentKind::Number) check_number_fits(call[i].scalar, dtype, true);
    call.convert(i, dtype);
  }
  combine(call, {0, 1, 2}, dtype);
}

void ternary(Call& call) {
  const Dtype dtype = promoted(call, {0, 1, 2});
  if (base_name(call) == "addcdiv" && is_integral(call.tensor(1).dtype) && is_integral(call.tensor(2).dtype)) {
    raise(PyExc_RuntimeError,
          "addcdiv(): Integer division with addcdiv is no longer supported. For integers write "
          "(input + value * trunc(tensor1 / tensor2)).to(input.dtype), for floating-point results "
          "(input + value * tensor1 / tensor2).");
  }
  check_number_fits(call[3].scalar, dtype, is_integral(dtype));
  for (int i : {0, 1, 2}) call.convert(i, dtype);
  combine(call, {0, 1, 2}, dtype);
}

void ternary_float(Call& call) {
  const Dtype dtype = call[0].is_tensor() ? call.tensor(0).dtype : promoted(call, {0, 1, 2});
  static constexpr const char* names[] = {"self", "end", "weight"};
  for (int i : {0, 1, 2}) {
    if (call[i].is_tensor()) {
      const Dtype other = call.tensor(i).dtype;
      check(other == dtype, PyExc_RuntimeError, "lerp(): expected dtype ", c_name(dtype), " for `", names[i], "` but got dtype ",
            c_name(other), "; convert it with .to(candelabra.", name(dtype), ")");
    } else {
      check_number_fits(call[i].scalar, dtype, false);
    }
  }
  if (is_integral(dtype)) not_implemented(call, dtype);
  for (int i : {0, 1, 2}) call.convert(i, call[i].is_tensor() ? dtype : number_dtype(call, dtype));
  combine(call, {0, 1, 2}, dtype);
}

// ---- activations

void activation(Call& call) {
  const Dtype dtype = call.tensor(0).dtype;
  if (is_integral(dtype)) not_implemented(call, dtype);
  if (base_name(call) == "gelu") {
    const std::string_view approximate = call[1].string;
    check(approximate == "none" || approximate == "tanh", PyExc_RuntimeError,
          "gelu(): approximate argument must be either none or tanh, but got '", approximate, "'");
  }
  combine(call, {0}, dtype);
}

void activation_backward(Call& call) {
  if (const TensorObject* like = quick_pair(call)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promoted(call, {0, 1});
  pair(call, dtype, dtype);
}

// Gradient, input and target, of one floating dtype.
void loss_backward(Call& call) {
  const Dtype dtype = promoted(call, {0, 1, 2});
  if (is_integral(dtype) || is_complex(dtype)) not_implemented(call, dtype);
  for (int i : {0, 1, 2}) call.convert(i, dtype);
  combine(call, {0, 1, 2}, dtype);
}

}  // namespace candelabra::shapes
