// Elementwise arithmetic, mathematics, comparison and logic.
#include <array>

#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// bool, integer, floating, complex: comparable with enum cb_scalar_kind, and the index of
// Operator::refusals.
int category(Dtype dtype) {
  if (dtype == Dtype::Bool) return CB_SCALAR_BOOL;
  if (is_complex(dtype)) return CB_SCALAR_COMPLEX;
  return is_floating(dtype) ? CB_SCALAR_FLOAT : CB_SCALAR_INT;
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse(const Call& call, const Refusal& refusal, Dtype dtype) {
  if (refusal.message.empty()) not_implemented(call, dtype);
  raise(refusal.exception, refusal.message);
}

// Throws if the operator's row refuses this dtype.
void check_dtype(const Call& call, Dtype dtype) {
  const Refusal& refusal = call.op.refusals[static_cast<size_t>(category(dtype))];
  if (refusal.exception) [[unlikely]]
    refuse(call, refusal, dtype);
}

// The operands of every rule of two arguments.
constexpr std::array<int, 2> both_operands{positions::add::self, positions::add::other};

// The dtype of a number beside tensors of the dtype `compute`.
Dtype number_dtype(const Call& call, Dtype compute) {
  if (compute != Dtype::Float16 && compute != Dtype::BFloat16) [[likely]]
    return compute;
  return call.op.tags & tag_float32_numbers ? Dtype::Float32 : compute;
}

// The fast path of two operands that need neither promotion nor broadcasting: two row-major tensors
// of one shape and dtype, or one and a number of no higher category. Returns the tensor whose sizes
// and dtype the result has, else null.
TensorObject* fast_pair(Call& call) {
  namespace at = positions::add;
  Argument &a = call[at::self], &b = call[at::other];
  if (a.is_tensor() && b.is_tensor()) {
    TensorObject *x = a.tensor, *y = b.tensor;
    return x->dtype == y->dtype && x->contiguous && y->contiguous && x->sizes == y->sizes ? x : nullptr;
  }
  const int number = a.is_tensor() ? at::other : at::self;
  TensorObject* tensor = a.is_tensor() ? a.tensor : b.is_tensor() ? b.tensor : nullptr;
  if (!tensor || !tensor->contiguous || category(tensor->dtype) < call[number].scalar.kind) return nullptr;
  call.convert(number, number_dtype(call, tensor->dtype));
  call.broadcast(number, tensor->sizes);
  return tensor;
}

// Converts the two operands to `compute`, broadcasts them, and adds an output of dtype `result`.
void combine_pair(Call& call, Dtype compute, Dtype result) {
  for (int i : both_operands) call.convert(i, call[i].is_tensor() ? compute : number_dtype(call, compute));
  combine(call, both_operands, result);
}

Dtype floating_or_default(Dtype dtype) {
  return is_integral(dtype) ? default_dtype() : dtype;
}

// Adds the output of two operands of one dtype, which fast_pair() has prepared if `like` is not
// null.
void combine_like(Call& call, const TensorObject* like, Dtype dtype) {
  if (like) [[likely]] {
    call.add_output(dtype, like->sizes);
  } else {
    combine_pair(call, dtype, dtype);
  }
}

bool is_bool(const Argument& argument) {
  return argument.is_tensor() ? argument.tensor->dtype == Dtype::Bool : argument.scalar.kind == CB_SCALAR_BOOL;
}

void check_approximate(const Call& call, int i) {
  const std::string_view approximate = call.arguments[i].string;
  check(approximate == "none" || approximate == "tanh", PyExc_RuntimeError, base_name(call),
        "(): approximate argument must be either none or tanh, but got '", approximate, "'");
}

void check_condition(const Argument& condition) {
  check(condition.is_tensor(), PyExc_TypeError, "where(): argument 'condition' (position 1) must be Tensor, not ",
        condition.object ? Py_TYPE(condition.object)->tp_name : "number");
  const Dtype dtype = condition.tensor->dtype;
  check(dtype == Dtype::Bool || dtype == Dtype::UInt8, PyExc_RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ", info(dtype).type_name);
}

}  // namespace

// ---- one argument

// The schemas of all unary operators begin with self.
void unary(Call& call) {
  namespace at = positions::neg;
  const Dtype dtype = call.tensor(at::self).dtype;
  check_dtype(call, dtype);
  combine(call, {at::self}, dtype);
}

void round(Call& call) {
  namespace at = positions::round;
  const Dtype dtype = call.tensor(at::self).dtype;
  check_dtype(call, dtype);
  if (!is_floating(dtype) && call.integer(at::decimals) != 0) not_implemented(call, dtype);
  combine(call, {at::self}, dtype);
}

// As pow(self, 2): bools become int64.
void square(Call& call) {
  namespace at = positions::square;
  const Dtype own = call.tensor(at::self).dtype, dtype = own == Dtype::Bool ? Dtype::Int64 : own;
  call.convert(at::self, dtype);
  combine(call, {at::self}, dtype);
}

void unary_float(Call& call) {
  namespace at = positions::exp;
  const Dtype dtype = floating_or_default(call.tensor(at::self).dtype);
  call.convert(at::self, dtype);
  combine(call, {at::self}, dtype);
}

void unary_real(Call& call) {
  namespace at = positions::abs;
  const Dtype dtype = call.tensor(at::self).dtype;
  check(!(call.in_place && is_complex(dtype)), PyExc_RuntimeError, "In-place ", base_name(call),
        " is not supported for complex tensors.");
  if (dtype == Dtype::Bool) not_implemented(call, dtype);
  combine(call, {at::self}, real_of(dtype));
}

void unary_angle(Call& call) {
  namespace at = positions::angle;
  const Dtype dtype = floating_or_default(call.tensor(at::self).dtype);
  call.convert(at::self, dtype);
  combine(call, {at::self}, real_of(dtype));
}

void unary_bool(Call& call) {
  namespace at = positions::isnan;
  check_dtype(call, call.tensor(at::self).dtype);
  combine(call, {at::self}, Dtype::Bool);
}

// ---- two arguments

// complex, polar: the same positions.
void complex(Call& call) {
  namespace at = positions::complex;
  const Dtype first = call.tensor(at::real).dtype, second = call.tensor(at::imag).dtype;
  const auto has_complex = [](Dtype dtype) {
    return dtype == Dtype::Float16 || dtype == Dtype::Float32 || dtype == Dtype::Float64;
  };
  check(has_complex(first) && has_complex(second), PyExc_RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got ", info(first).type_name, " and ",
        info(second).type_name);
  check(first == second, PyExc_RuntimeError, "Expected object of scalar type ", info(first).type_name,
        " but got scalar type ", info(second).type_name, " for second argument");
  combine(call, {at::real, at::imag}, complex_of(first));
}

void binary(Call& call) {
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    if (!is_floating(like->dtype)) check_dtype(call, like->dtype);  // all take floats
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_dtype(call, dtype);
  combine_pair(call, dtype, dtype);
}

void pow(Call& call) {
  namespace at = positions::pow;
  const TensorObject* like = fast_pair(call);
  const Dtype dtype = like ? like->dtype : promote_dtypes(call, both_operands);
  const Argument& exponent = call[at::exponent];
  if (is_integral(dtype) && !exponent.is_tensor()) {
    check(exponent.scalar.i >= 0, PyExc_RuntimeError, "Integers to negative integer powers are not allowed.");
    check_number_fits(exponent.scalar, dtype, true);
  }
  // A bool to the power of a number is 1 or the bool itself. Other powers of bools lack a kernel.
  if (dtype == Dtype::Bool && (exponent.is_tensor() || !call[at::self].is_tensor())) not_implemented(call, dtype);
  combine_like(call, like, dtype);
}

void heaviside(Call& call) {
  namespace at = positions::heaviside;
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_dtype(call, dtype);
  check(call.tensor(at::self).dtype == call.tensor(at::values).dtype, PyExc_RuntimeError,
        "heaviside is not yet implemented for tensors with different dtypes.");
  combine_like(call, fast_pair(call), dtype);
}

void add(Call& call) {
  namespace at = positions::add;
  const cb_scalar& alpha = call[at::alpha].scalar;
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    if (!is_floating(like->dtype) || alpha.kind != CB_SCALAR_INT) check_factor(call, "alpha", alpha, like->dtype);
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_factor(call, "alpha", alpha, dtype);
  combine_pair(call, dtype, dtype);
}

// sub, rsub: the same positions.
void subtract(Call& call) {
  namespace at = positions::sub;
  const bool first = is_bool(call[at::self]), second = is_bool(call[at::other]);
  check(!(first && second), PyExc_RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  check(!(first || second), PyExc_RuntimeError,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.");
  add(call);
}

void binary_float(Call& call) {
  const TensorObject* like = fast_pair(call);
  if (like && !is_integral(like->dtype)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_dtype(call, dtype);
  combine_pair(call, floating_or_default(dtype), floating_or_default(dtype));
}

void binary_integer(Call& call) {
  const TensorObject* like = fast_pair(call);
  const Dtype dtype = like ? like->dtype : promote_dtypes(call, both_operands);
  if (!is_integral(dtype)) not_implemented(call, dtype);
  check_dtype(call, dtype);
  combine_like(call, like, dtype);
}

void divide(Call& call) {
  const Argument& rounding = call[positions::div::rounding_mode];
  if (rounding.given()) {
    const std::string_view mode = rounding.string;
    check(mode == "floor" || mode == "trunc", PyExc_RuntimeError,
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
  }
  const TensorObject* like = fast_pair(call);
  if (like && is_floating(like->dtype)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  Dtype dtype = like ? like->dtype : promote_dtypes(call, both_operands);
  if (!rounding.given()) {
    dtype = floating_or_default(dtype);
  } else if (is_complex(dtype) || dtype == Dtype::Bool) {
    not_implemented(call, dtype);
  }
  combine_pair(call, dtype, dtype);
}

void compare(Call& call) {
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    call.add_output(Dtype::Bool, like->sizes);
    return;
  }
  combine_pair(call, promote_dtypes(call, both_operands), Dtype::Bool);
}

// lt, le, gt, ge: the same positions.
void compare_order(Call& call) {
  namespace at = positions::lt;
  for (int i : {at::self, at::other}) {
    const bool is_tensor = call[i].is_tensor();
    // Raised at once, as in PyTorch: not_implemented() would check the shapes first.
    if (is_tensor ? is_complex(call[i].tensor->dtype) : call[i].scalar.kind == CB_SCALAR_COMPLEX) {
      const Dtype dtype = promote_dtypes(call, both_operands);
      raise(PyExc_NotImplementedError, '"', base_name(call), "\" not implemented for '", info(dtype).type_name, "'");
    }
  }
  compare(call);
}

// ---- three arguments

void where(Call& call) {
  namespace at = positions::where;
  check_condition(call[at::condition]);
  const Dtype dtype = promote_dtypes(call, {at::input, at::other});
  // A half-precision result takes a number beyond its range as infinity.
  const bool exactly = is_integral(dtype) || itemsize(dtype) > 2;
  for (int i : {at::input, at::other}) {
    if (call[i].kind == ArgumentKind::Number) check_number_fits(call[i].scalar, dtype, exactly);
  }
  call.convert(at::condition, Dtype::Bool);
  call.convert(at::input, dtype);
  call.convert(at::other, dtype);
  combine(call, {at::condition, at::input, at::other}, dtype);
}

void clamp(Call& call) {
  namespace at = positions::clamp;
  check(call[at::min].given() || call[at::max].given(), PyExc_RuntimeError,
        "clamp(): At least one of 'min' or 'max' must not be None");
  const Dtype dtype = promote_dtypes(call, {at::self, at::min, at::max});
  check(!is_complex(dtype), PyExc_NotImplementedError, "clamp is not supported for complex types");
  if (dtype == Dtype::Bool) not_implemented(call, dtype);
  for (int i : {at::self, at::min, at::max}) {
    if (i != at::self && call[i].kind == ArgumentKind::Number) check_number_fits(call[i].scalar, dtype, true);
    call.convert(i, dtype);
  }
  combine(call, {at::self, at::min, at::max}, dtype);
}

// addcmul, addcdiv: the same positions.
void addcmul(Call& call) {
  namespace at = positions::addcmul;
  const Dtype dtype = promote_dtypes(call, {at::self, at::tensor1, at::tensor2});
  check_number_fits(call[at::value].scalar, dtype, is_integral(dtype));
  for (int i : {at::self, at::tensor1, at::tensor2}) call.convert(i, dtype);
  combine(call, {at::self, at::tensor1, at::tensor2}, dtype);
}

void addcdiv(Call& call) {
  namespace at = positions::addcdiv;
  check(!is_integral(call.tensor(at::tensor1).dtype) || !is_integral(call.tensor(at::tensor2).dtype),
        PyExc_RuntimeError,
        "Integer division with addcdiv is no longer supported. For integers write "
        "(input + value * trunc(tensor1 / tensor2)).to(input.dtype), for floating-point results "
        "(input + value * tensor1 / tensor2).");
  addcmul(call);
}

void ternary_float(Call& call) {
  namespace at = positions::lerp;
  static constexpr std::array<int, 3> operands{at::self, at::end, at::weight};
  const Dtype dtype = call[at::self].is_tensor() ? call.tensor(at::self).dtype : promote_dtypes(call, operands);
  for (int i : operands) {
    if (call[i].is_tensor()) {
      const Dtype other = call.tensor(i).dtype;
      check(other == dtype, PyExc_RuntimeError, "lerp(): expected dtype ", cpp_type_name(dtype), " for `",
            call.op.schema.parameters[static_cast<size_t>(i)].name, "` but got dtype ", cpp_type_name(other),
            "; convert it with .to(candelabra.", name(dtype), ")");
    } else {
      check_number_fits(call[i].scalar, dtype, false);
    }
  }
  if (is_integral(dtype)) not_implemented(call, dtype);
  for (int i : operands) call.convert(i, call[i].is_tensor() ? dtype : number_dtype(call, dtype));
  combine(call, operands, dtype);
}

// ---- activations

// The schemas of all activations begin with self.
void activation(Call& call) {
  namespace at = positions::silu;
  const Dtype dtype = call.tensor(at::self).dtype;
  if (is_integral(dtype)) not_implemented(call, dtype);
  combine(call, {at::self}, dtype);
}

void activation_backward(Call& call) {
  const TensorObject* like = fast_pair(call);
  combine_like(call, like, like ? like->dtype : promote_dtypes(call, both_operands));
}

void gelu(Call& call) {
  namespace at = positions::gelu;
  activation(call);
  check_approximate(call, at::approximate);
}

void gelu_backward(Call& call) {
  namespace at = positions::gelu_backward;
  check_approximate(call, at::approximate);
  activation_backward(call);
}

// The gradients of elementwise losses with regard to self: the schemas begin with grad, self,
// target, of one floating dtype.
void loss_backward(Call& call) {
  namespace at = positions::squared_error_backward;
  const Dtype dtype = promote_dtypes(call, {at::grad, at::self, at::target});
  if (is_integral(dtype) || is_complex(dtype)) not_implemented(call, dtype);
  for (int i : {at::grad, at::self, at::target}) call.convert(i, dtype);
  combine(call, {at::grad, at::self, at::target}, dtype);
}

}  // namespace candelabra::shapes
