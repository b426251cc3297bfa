// Elementwise arithmetic, mathematics, comparison and logic.
#include <algorithm>
#include <array>

#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// How an operator refuses a category of dtypes: with PyTorch's message or by not_implemented().
struct Refusal {
  PyObject** exception = nullptr;  // null: not_implemented()
  bool is_named = false;           // the message begins with the operator's name
  const char* message = "";
};

// What one operator does differently from the others with its shape rule.
enum class Special : uint8_t {
  None,
  Float32Numbers,          // of numbers beside half precision: x * 0.1 is rounded once
  BoolAsInt64,             // square: as pow(self, 2)
  Decimals,                // round
  IntegerPower,            // pow
  EqualDtypes,             // heaviside
  RefusesBools,            // sub, rsub
  RefusesComplex,          // lt, le, gt, ge
  RefusesIntegerDivision,  // addcdiv
  ChecksApproximate,       // gelu
};

}  // namespace

struct ElementwiseTraits {
  std::string_view name;
  std::array<const Refusal*, 4> refusals{};  // by category(); null where these dtypes are taken
  Special special = Special::None;
};

namespace {

constexpr const Refusal* taken = nullptr;
constexpr Refusal unimplemented{};
constexpr Refusal complex_extremum{&PyExc_RuntimeError, true, " not implemented for complex tensors."};
constexpr Refusal complex_infinity{&PyExc_RuntimeError, true, " does not support complex inputs."};
constexpr Refusal complex_rounding{&PyExc_NotImplementedError, true, " is not supported for complex inputs"};
constexpr Refusal complex_relu{&PyExc_NotImplementedError, false, "relu is not supported for complex types"};
constexpr Refusal complex_heaviside{&PyExc_RuntimeError, false,
                                    "heaviside is not yet implemented for complex tensors."};
constexpr Refusal complex_sign{
    &PyExc_NotImplementedError, false,
    "Unlike NumPy, sign() is not intended to support complex numbers. Please use sgn() instead."};
constexpr Refusal complex_signbit{&PyExc_NotImplementedError, false, "signbit is not implemented for complex tensors."};
constexpr Refusal bool_relu{&PyExc_RuntimeError, false, "Boolean inputs not supported for relu"};
constexpr Refusal bool_negation{
    &PyExc_RuntimeError, false,
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."};

constexpr ElementwiseTraits no_traits{};

// Sorted by name. The columns of refusals: bool, integers, floats, complex.
constexpr ElementwiseTraits traits_table[] = {
    {"addcdiv", {}, Special::RefusesIntegerDivision},
    {"bernoulli", {&unimplemented, &unimplemented, taken, &unimplemented}},
    {"bitwise_left_shift", {&unimplemented, taken, taken, taken}},
    {"bitwise_not", {taken, taken, &unimplemented, &unimplemented}},
    {"bitwise_right_shift", {&unimplemented, taken, taken, taken}},
    {"ceil", {&unimplemented, taken, taken, &complex_rounding}},
    {"div", {}, Special::Float32Numbers},
    {"floor", {&unimplemented, taken, taken, &complex_rounding}},
    {"floor_divide", {taken, taken, taken, &unimplemented}},
    {"fmax", {taken, taken, taken, &complex_extremum}},
    {"fmin", {taken, taken, taken, &complex_extremum}},
    {"fmod", {taken, taken, taken, &unimplemented}},
    {"frac", {&unimplemented, &unimplemented, taken, &complex_rounding}},
    {"ge", {}, Special::RefusesComplex},
    {"gelu", {}, Special::ChecksApproximate},
    {"gt", {}, Special::RefusesComplex},
    {"heaviside", {taken, taken, taken, &complex_heaviside}, Special::EqualDtypes},
    {"hypot", {&unimplemented, &unimplemented, taken, taken}},
    {"isneginf", {taken, taken, taken, &complex_infinity}},
    {"isposinf", {taken, taken, taken, &complex_infinity}},
    {"le", {}, Special::RefusesComplex},
    {"lerp", {}, Special::Float32Numbers},
    {"logaddexp", {&unimplemented, &unimplemented, taken, taken}},
    {"logaddexp2", {&unimplemented, &unimplemented, taken, taken}},
    {"lt", {}, Special::RefusesComplex},
    {"maximum", {taken, taken, taken, &complex_extremum}},
    {"minimum", {taken, taken, taken, &complex_extremum}},
    {"mul", {}, Special::Float32Numbers},
    {"neg", {&bool_negation, taken, taken, taken}},
    {"nextafter", {&unimplemented, &unimplemented, taken, taken}},
    {"pow", {}, Special::IntegerPower},
    {"relu", {&bool_relu, taken, taken, &complex_relu}},
    {"remainder", {taken, taken, taken, &unimplemented}},
    {"round", {&unimplemented, taken, taken, &complex_rounding}, Special::Decimals},
    {"rsub", {}, Special::RefusesBools},
    {"sign", {taken, taken, taken, &complex_sign}},
    {"signbit", {taken, taken, taken, &complex_signbit}},
    {"square", {}, Special::BoolAsInt64},
    {"sub", {}, Special::RefusesBools},
    {"trunc", {&unimplemented, taken, taken, &complex_rounding}},
};
static_assert(std::ranges::is_sorted(traits_table, {}, &ElementwiseTraits::name));

bool is_special(const Call& call, Special special) {
  return call.op.traits->special == special;
}

// bool, integer, floating, complex: comparable with enum cb_scalar_kind.
int category(Dtype dtype) {
  if (dtype == Dtype::Bool) return CB_SCALAR_BOOL;
  if (is_complex(dtype)) return CB_SCALAR_COMPLEX;
  return is_floating(dtype) ? CB_SCALAR_FLOAT : CB_SCALAR_INT;
}

// Throws where the operator does not take this dtype.
void check_dtype(const Call& call, Dtype dtype) {
  const Refusal* refusal = call.op.traits->refusals[static_cast<size_t>(category(dtype))];
  if (!refusal) [[likely]]
    return;
  if (!refusal->exception) not_implemented(call, dtype);
  raise(*refusal->exception, refusal->is_named ? base_name(call) : "", refusal->message);
}

// The operands of every rule of two arguments.
constexpr std::array<int, 2> both_operands{positions::add::self, positions::add::other};

// The dtype of a number beside tensors of the dtype `compute`.
Dtype number_dtype(const Call& call, Dtype compute) {
  if (compute != Dtype::Float16 && compute != Dtype::BFloat16) [[likely]]
    return compute;
  return is_special(call, Special::Float32Numbers) ? Dtype::Float32 : compute;
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

void check_binary(Call& call, Dtype dtype) {
  check_dtype(call, dtype);
  if (is_special(call, Special::IntegerPower) && is_integral(dtype)) {
    namespace at = positions::pow;
    const Argument& exponent = call[at::exponent];
    check(exponent.is_tensor() || exponent.scalar.i >= 0, PyExc_RuntimeError,
          "Integers to negative integer powers are not allowed.");
    // A bool to the power of a number is 1 or the bool itself. Other powers of bools lack a kernel.
    if (dtype == Dtype::Bool && (exponent.is_tensor() || !call[at::self].is_tensor())) not_implemented(call, dtype);
  }
  if (is_special(call, Special::EqualDtypes)) {
    namespace at = positions::heaviside;
    check(call.tensor(at::self).dtype == call.tensor(at::values).dtype, PyExc_RuntimeError,
          "heaviside is not yet implemented for tensors with different dtypes.");
  }
}

bool is_bool(const Argument& argument) {
  return argument.is_tensor() ? argument.tensor->dtype == Dtype::Bool : argument.scalar.kind == CB_SCALAR_BOOL;
}

// add, sub, rsub: the same positions.
void check_alpha(Call& call, Dtype dtype) {
  namespace at = positions::add;
  if (is_special(call, Special::RefusesBools)) {
    const bool first = is_bool(call[at::self]), second = is_bool(call[at::other]);
    check(!(first && second), PyExc_RuntimeError,
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
          "operator instead.");
    check(!(first || second), PyExc_RuntimeError,
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
          "the `~` or "
          "`logical_not()` operator instead.");
  }
  check_factor(call, "alpha", call[at::alpha].scalar, dtype);
}

// Raised at once, as in PyTorch: not_implemented() would check the shapes first.
void check_comparison(Call& call, Dtype dtype) {
  check(!is_special(call, Special::RefusesComplex), PyExc_NotImplementedError, '"', base_name(call),
        "\" not implemented for '", info(dtype).type_name, "'");
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
  namespace at = positions::round;
  Dtype dtype = call.tensor(at::self).dtype;
  check_dtype(call, dtype);
  if (!is_floating(dtype)) {
    if (is_special(call, Special::Decimals) && call.integer(at::decimals) != 0) not_implemented(call, dtype);
    if (dtype == Dtype::Bool && is_special(call, Special::BoolAsInt64)) call.convert(at::self, dtype = Dtype::Int64);
  }
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
  check(is_floating(first) && is_floating(second) && first != Dtype::BFloat16 && second != Dtype::BFloat16,
        PyExc_RuntimeError, "Expected both inputs to be Half, Float or Double tensors but got ", info(first).type_name,
        " and ", info(second).type_name);
  check(first == second, PyExc_RuntimeError, "Expected object of scalar type ", info(first).type_name,
        " but got scalar type ", info(second).type_name, " for second argument");
  if (first == Dtype::Float16) not_implemented(call, first);  // no complex dtype has this precision
  combine(call, {at::real, at::imag}, complex_of(first));
}

void binary(Call& call) {
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    if (!is_floating(like->dtype)) check_binary(call, like->dtype);
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_binary(call, dtype);
  combine_pair(call, dtype, dtype);
}

// add, sub, rsub: the same positions.
void binary_alpha(Call& call) {
  namespace at = positions::add;
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    const bool is_plain = is_floating(like->dtype) && call[at::alpha].scalar.kind == CB_SCALAR_INT &&
                          !is_bool(call[at::self]) && !is_bool(call[at::other]);
    if (!is_plain) check_alpha(call, like->dtype);
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  check_alpha(call, dtype);
  combine_pair(call, dtype, dtype);
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
  if (like) {
    call.add_output(dtype, like->sizes);
  } else {
    combine_pair(call, dtype, dtype);
  }
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
    if (is_complex(like->dtype)) check_comparison(call, like->dtype);
    call.add_output(Dtype::Bool, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  if (is_complex(dtype)) check_comparison(call, dtype);
  combine_pair(call, dtype, Dtype::Bool);
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
void ternary(Call& call) {
  namespace at = positions::addcdiv;
  const Dtype dtype = promote_dtypes(call, {at::self, at::tensor1, at::tensor2});
  if (is_special(call, Special::RefusesIntegerDivision) && is_integral(call.tensor(at::tensor1).dtype) &&
      is_integral(call.tensor(at::tensor2).dtype)) {
    raise(PyExc_RuntimeError,
          "addcdiv(): Integer division with addcdiv is no longer supported. For integers write "
          "(input + value * trunc(tensor1 / tensor2)).to(input.dtype), for floating-point results "
          "(input + value * tensor1 / tensor2).");
  }
  check_number_fits(call[at::value].scalar, dtype, is_integral(dtype));
  for (int i : {at::self, at::tensor1, at::tensor2}) call.convert(i, dtype);
  combine(call, {at::self, at::tensor1, at::tensor2}, dtype);
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
  namespace at = positions::gelu;
  const Dtype dtype = call.tensor(at::self).dtype;
  if (is_integral(dtype)) not_implemented(call, dtype);
  if (is_special(call, Special::ChecksApproximate)) {
    const std::string_view approximate = call[at::approximate].string;
    check(approximate == "none" || approximate == "tanh", PyExc_RuntimeError,
          "gelu(): approximate argument must be either none or tanh, but got '", approximate, "'");
  }
  combine(call, {at::self}, dtype);
}

void activation_backward(Call& call) {
  if (const TensorObject* like = fast_pair(call)) [[likely]] {
    call.add_output(like->dtype, like->sizes);
    return;
  }
  const Dtype dtype = promote_dtypes(call, both_operands);
  combine_pair(call, dtype, dtype);
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

namespace candelabra {

const shapes::ElementwiseTraits* find_elementwise_traits(std::string_view operator_name) {
  using shapes::ElementwiseTraits, shapes::traits_table;
  const auto* found = std::ranges::lower_bound(traits_table, operator_name, {}, &ElementwiseTraits::name);
  return found != std::end(traits_table) && found->name == operator_name ? found : &shapes::no_traits;
}

}  // namespace candelabra
