#include "compile/formulas.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "drivers/blocks.hpp"

namespace candelabra::cpu {

namespace {

// Of halves, the formulas are those of float32.
constexpr uint64_t narrow_floats = CB_DTYPE_BIT(CB_FLOAT32) | CB_DTYPE_BIT(CB_FLOAT16) | CB_DTYPE_BIT(CB_BFLOAT16);
constexpr uint64_t floats = narrow_floats | CB_DTYPE_BIT(CB_FLOAT64);
constexpr uint64_t integers = CB_DTYPE_BIT(CB_UINT8) | CB_DTYPE_BIT(CB_INT8) | CB_DTYPE_BIT(CB_INT16) |
                              CB_DTYPE_BIT(CB_INT32) | CB_DTYPE_BIT(CB_INT64);
constexpr uint64_t bools = CB_DTYPE_BIT(CB_BOOL);
constexpr uint64_t reals = floats | integers;

// Which dtypes the tensors of an operator have together.
enum class OperandTypes : uint8_t {
  Same,        // all, the result's too
  Compared,    // all operands; the result is bool
  Condition0,  // all, but operand 0 is bool
  Condition1   // all, but operand 1 is bool
};

struct Formula {
  const char* name;
  uint64_t dtypes;  // that it computes in
  OperandTypes types;
  bool is_exact;
  std::string (*text)(const NodeText&);
  bool (*accepts)(const cb_graph_node&) = nullptr;  // the arguments that are no tensors
};

using Text = const NodeText&;

// ---- sums, differences, products

bool is_one(const cb_scalar& scalar) {
  return scalar.re == 1 && scalar.im == 0 && scalar.kind != CB_SCALAR_BOOL;
}
bool has_real_scalars(const cb_graph_node& node) {
  return std::all_of(node.arguments, node.arguments + node.argument_count, [](const cb_value& value) {
    return value.kind != CB_SCALAR || (value.as.scalar->kind != CB_SCALAR_COMPLEX && !value.as.scalar->flags);
  });
}

std::string scaled(Text node, int position) {
  const cb_scalar& scalar = *node.node.arguments[position].as.scalar;
  return node.to.is_float() ? node.to.number(scalar.re) : node.to.integer(scalar.i);
}

// c + factor * b as the kernels' loops contract it.
std::string multiply_add(VectorText& to, const std::string& factor, const std::string& b, const std::string& c) {
  return to.is_float() ? to.fma(factor, b, c) : to.binary("add", c, to.binary("mul", factor, b));
}

std::string add(Text node) {
  if (node.to.is_bool()) return node.to.either(node.operand(0), node.operand(1));
  if (is_one(*node.node.arguments[2].as.scalar)) return node.to.binary("add", node.operand(0), node.operand(1));
  return multiply_add(node.to, scaled(node, 2), node.operand(1), node.operand(0));
}
bool accepts_add(const cb_graph_node& node) {
  const bool is_bool = node.arguments[0].as.tensor->dtype == CB_BOOL;
  return has_real_scalars(node) && (!is_bool || is_one(*node.arguments[2].as.scalar));
}
std::string subtract(Text node, int a, int b) {
  if (is_one(*node.node.arguments[2].as.scalar)) return node.to.binary("sub", node.operand(a), node.operand(b));
  const std::string factor = node.to.negative(scaled(node, 2));
  return multiply_add(node.to, factor, node.operand(b), node.operand(a));
}
std::string sub(Text node) {
  return subtract(node, 0, 1);
}
std::string rsub(Text node) {
  return subtract(node, 1, 0);
}
std::string mul(Text node) {
  return node.to.binary(node.to.is_bool() ? "and" : "mul", node.operand(0), node.operand(1));
}
std::string addcmul(Text node) {
  const std::string product = node.to.binary("mul", scaled(node, 3), node.operand(1));
  return multiply_add(node.to, product, node.operand(2), node.operand(0));
}
std::string addcdiv(Text node) {
  const std::string quotient = node.to.binary("div", node.operand(1), node.operand(2));
  return node.to.fma(scaled(node, 3), quotient, node.operand(0));
}

// ---- division, powers

std::string div(Text node) {
  return node.to.binary("div", node.operand(0), node.operand(1));
}
bool has_no_rounding(const cb_graph_node& node) {
  return node.arguments[2].kind == CB_NONE;
}
std::string reciprocal_of(VectorText& to, const std::string& x) {
  return to.binary("div", to.number(1), x);
}
std::string reciprocal(Text node) {
  return reciprocal_of(node.to, node.operand(0));
}
std::string rsqrt(Text node) {
  return reciprocal_of(node.to, node.to.intrinsic("sqrt", node.operand(0)));
}
std::string square(Text node) {
  return node.to.is_bool() ? node.to.either(node.operand(0), node.operand(0))
                           : node.to.binary("mul", node.operand(0), node.operand(0));
}

double exponent_of(const cb_graph_node& node) {
  const cb_tensor& exponent = *node.arguments[1].as.tensor;
  if (is_half(exponent.dtype)) {
    float wide = 0;
    widen(exponent.dtype, exponent.data, &wide, 1);
    return static_cast<double>(wide);
  }
  if (exponent.dtype == CB_FLOAT32) return static_cast<double>(*static_cast<const float*>(exponent.data));
  return *static_cast<const double*>(exponent.data);
}
std::string pow(Text node) {
  VectorText& to = node.to;
  const double exponent = exponent_of(node.node);
  const std::string& x = node.operand(0);
  if (exponent == 0.5) return to.intrinsic("sqrt", x);
  if (exponent == -1) return reciprocal_of(to, x);
  const std::string squared = to.binary("mul", x, x);
  if (exponent == 3) return to.binary("mul", squared, x);
  return exponent == 2 ? squared : reciprocal_of(to, squared);
}
bool has_common_exponent(const cb_graph_node& node) {
  if (!(node.arguments[1].as.tensor->flags & CB_TENSOR_NUMBER)) return false;
  const double exponent = exponent_of(node);
  return exponent == 2 || exponent == 3 || exponent == 0.5 || exponent == -1 || exponent == -2;
}

// ---- signs, rounding, limits

std::string neg(Text node) {
  return node.to.negative(node.operand(0));
}
std::string abs(Text node) {
  VectorText& to = node.to;
  if (to.is_float()) return to.intrinsic("fabs", node.operand(0));
  if (to.dtype() == CB_UINT8) return to.binary("add", node.operand(0), to.integer(0));
  return to.select(to.compare("lt", node.operand(0), to.integer(0)), to.negative(node.operand(0)), node.operand(0));
}
template <char... Function>
struct Rounding {
  static constexpr char name[] = {Function..., 0};
  static std::string text(Text node) { return node.to.intrinsic(name, node.operand(0)); }
};
using SquareRoot = Rounding<'s', 'q', 'r', 't'>;
using Floor = Rounding<'f', 'l', 'o', 'o', 'r'>;
using Ceil = Rounding<'c', 'e', 'i', 'l'>;
using Trunc = Rounding<'t', 'r', 'u', 'n', 'c'>;

std::string relu(Text node) {
  VectorText& to = node.to;
  const std::string zero = to.is_float() ? to.number(0) : to.integer(0);
  return to.select(to.compare("lt", node.operand(0), zero), zero, node.operand(0));
}
// The kernels' a != a || a > b ? a : b.
std::string extremum(Text node, const char* condition) {
  VectorText& to = node.to;
  std::string is_first = to.compare(condition, node.operand(0), node.operand(1));
  if (to.is_float()) is_first = to.either(to.is_nan(node.operand(0)), is_first);
  return to.select(is_first, node.operand(0), node.operand(1));
}
std::string maximum(Text node) {
  return extremum(node, "gt");
}
std::string minimum(Text node) {
  return extremum(node, "lt");
}
// x beyond a limit becomes the limit; NaN of either propagates, that of x first.
std::string limited(VectorText& to, const char* condition, const std::string& x, const std::string& limit) {
  std::string is_beyond = to.compare(condition, x, limit);
  if (!to.is_float()) return to.select(is_beyond, limit, x);
  is_beyond = to.either(is_beyond, to.is_nan(limit));
  return to.select(is_beyond, to.select(to.is_nan(x), x, limit), x);
}
std::string clamp(Text node) {
  VectorText& to = node.to;
  const std::string& x = node.operand(0);
  if (!node.has(2)) return limited(to, "lt", x, node.operand(1));
  if (!node.has(1)) return limited(to, "gt", x, node.operand(2));
  const std::string &low = node.operand(1), &high = node.operand(2);
  if (!to.is_float()) return limited(to, "gt", limited(to, "lt", x, low), high);
  const std::string below = to.either(to.compare("lt", x, low), to.is_nan(low));
  const std::string raised = to.select(below, low, x);
  const std::string above = to.either(to.compare("gt", raised, high), to.is_nan(high));
  const std::string lowered = to.select(above, high, raised);
  return to.select(to.is_nan(x), x, to.select(to.is_nan(low), low, lowered));
}
bool has_a_limit(const cb_graph_node& node) {
  return node.arguments[1].kind == CB_TENSOR || node.arguments[2].kind == CB_TENSOR;
}
std::string hardtanh(Text node) {
  VectorText& to = node.to;
  const std::string low = to.number(node.scalar(1)), high = to.number(node.scalar(2));
  const std::string raised = to.select(to.compare("lt", node.operand(0), low), low, node.operand(0));
  return to.select(to.compare("gt", raised, high), high, raised);
}
std::string leaky_relu(Text node) {
  VectorText& to = node.to;
  const std::string scaled = to.binary("mul", node.operand(0), to.number(node.scalar(1)));
  return to.select(to.compare("gt", node.operand(0), to.number(0)), node.operand(0), scaled);
}
std::string leaky_relu_backward(Text node) {
  VectorText& to = node.to;
  const std::string scaled = to.binary("mul", node.operand(0), to.number(node.scalar(2)));
  return to.select(to.compare("gt", node.operand(1), to.number(0)), node.operand(0), scaled);
}
std::string threshold_backward(Text node) {
  VectorText& to = node.to;
  return to.select(to.compare("le", node.operand(1), to.number(node.scalar(2))), to.number(0), node.operand(0));
}
std::string sigmoid_backward(Text node) {
  VectorText& to = node.to;
  const std::string rest = to.binary("sub", to.number(1), node.operand(1));
  return to.binary("mul", to.binary("mul", node.operand(0), rest), node.operand(1));
}
std::string tanh_backward(Text node) {
  VectorText& to = node.to;
  return to.binary("mul", node.operand(0), to.fma(to.negative(node.operand(1)), node.operand(1), to.number(1)));
}

// ---- comparison, logic, selection

template <char First, char Second>
std::string compared(Text node) {
  constexpr char condition[] = {First, Second, 0};
  return node.to.compare(condition, node.operand(0), node.operand(1));
}
std::string is_nan(Text node) {
  return node.to.is_nan(node.operand(0));
}
std::string bitwise_and(Text node) {
  return node.to.binary("and", node.operand(0), node.operand(1));
}
std::string bitwise_or(Text node) {
  return node.to.binary("or", node.operand(0), node.operand(1));
}
std::string bitwise_xor(Text node) {
  return node.to.binary("xor", node.operand(0), node.operand(1));
}
std::string logical_not(Text node) {
  return node.to.binary("xor", node.operand(0), node.to.is_bool() ? node.to.integer(-1) : node.to.integer(1));
}
std::string bitwise_not(Text node) {
  return node.to.binary("xor", node.operand(0), node.to.integer(-1));
}
std::string where(Text node) {
  return node.to.select(node.operand(0), node.operand(1), node.operand(2));
}
std::string masked_fill(Text node) {
  return node.to.select(node.operand(1), node.operand(2), node.operand(0));
}

// ---- approximations, of float32

// e^x with a relative error of some units in the last place; 0 below 2.5e-38.
std::string exp_of(VectorText& to, const std::string& x) {
  const std::string low = to.number(-86.6), high = to.number(88.72283);
  const std::string raised = to.select(to.compare("lt", x, low), low, x);
  const std::string inside = to.select(to.compare("gt", raised, high), high, raised);
  // Adding 1.5 * 2^23 leaves the nearest integer of x / ln 2 in the low bits.
  const std::string magic = to.number(12582912.0);
  const std::string shifted = to.fma(inside, to.number(1.4426950408889634), magic);
  const std::string n = to.binary("sub", shifted, magic);
  std::string r = to.fma(n, to.number(-0.693359375), inside);
  r = to.fma(n, to.number(2.12194440e-4), r);
  std::string sum = to.number(1.0 / 5040);
  for (const double factor : {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0})
    sum = to.fma(sum, r, to.number(factor));
  // Half of 2^n, then twice: 2^128 is no float.
  const std::string ints = vector_type(CB_INT32), floats = vector_type(CB_FLOAT32);
  const std::string bits = to.line("bitcast " + floats + " " + shifted + " to " + ints);
  to.set_dtype(CB_INT32);
  const std::string exponent =
      to.line("shl " + ints + " " + to.binary("sub", bits, to.integer(1)) + ", " + to.integer(23));
  const std::string half = to.binary("add", to.line("bitcast " + floats + " " + sum + " to " + ints), exponent);
  to.set_dtype(CB_FLOAT32);
  const std::string halved = to.line("bitcast " + ints + " " + half + " to " + floats);
  const std::string result = to.binary("mul", halved, to.number(2));
  const std::string above = to.select(to.compare("gt", x, high), to.number(HUGE_VAL), result);
  return to.select(to.is_nan(x), x, to.select(to.compare("lt", x, low), to.number(0), above));
}
std::string exp(Text node) {
  return exp_of(node.to, node.operand(0));
}
std::string sigmoid_of(VectorText& to, const std::string& x) {
  return reciprocal_of(to, to.binary("add", to.number(1), exp_of(to, to.negative(x))));
}
std::string sigmoid(Text node) {
  return sigmoid_of(node.to, node.operand(0));
}
std::string silu(Text node) {
  return node.to.binary("mul", node.operand(0), sigmoid_of(node.to, node.operand(0)));
}
// 1 - 2 / (e^2x + 1), or a polynomial near 0 (tanhf of Moshier's Cephes).
std::string tanh_of(VectorText& to, const std::string& x) {
  const std::string e = exp_of(to, to.binary("add", x, x));
  const std::string rest = to.binary("div", to.number(2), to.binary("add", e, to.number(1)));
  const std::string far = to.binary("sub", to.number(1), rest);
  const std::string squared = to.binary("mul", x, x);
  std::string sum = to.number(-5.70498872745e-3);
  for (const double factor : {2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1})
    sum = to.fma(sum, squared, to.number(factor));
  const std::string near = to.fma(to.binary("mul", sum, squared), x, x);
  return to.select(to.compare("lt", to.intrinsic("fabs", x), to.number(0.625)), near, far);
}
std::string tanh(Text node) {
  return tanh_of(node.to, node.operand(0));
}
// Abramowitz and Stegun, 7.1.26: an error of at most 1.5e-7.
std::string erf_of(VectorText& to, const std::string& x) {
  const std::string magnitude = to.intrinsic("fabs", x);
  const std::string t = reciprocal_of(to, to.fma(to.number(0.3275911), magnitude, to.number(1)));
  std::string sum = to.number(1.061405429);
  for (const double factor : {-1.453152027, 1.421413741, -0.284496736, 0.254829592})
    sum = to.fma(sum, t, to.number(factor));
  const std::string e = exp_of(to, to.negative(to.binary("mul", x, x)));
  const std::string positive = to.binary("sub", to.number(1), to.binary("mul", to.binary("mul", sum, t), e));
  return to.select(to.compare("lt", x, to.number(0)), to.negative(positive), positive);
}
std::string gelu(Text node) {
  VectorText& to = node.to;
  const std::string& x = node.operand(0);
  const std::string half = to.binary("mul", x, to.number(0.5));
  std::string part;
  if (std::strcmp(node.node.arguments[1].as.string, "tanh") == 0) {
    const std::string cubed = to.binary("mul", to.binary("mul", x, x), x);
    const std::string inner = to.fma(to.number(0.044715), cubed, x);
    part = tanh_of(to, to.binary("mul", inner, to.number(0.7978845608028654)));
  } else {
    part = erf_of(to, to.binary("mul", x, to.number(0.7071067811865476)));
  }
  return to.fma(half, part, half);
}

constexpr Formula formulas[] = {
    {"add", reals | bools, OperandTypes::Same, true, add, accepts_add},
    {"sub", reals, OperandTypes::Same, true, sub, has_real_scalars},
    {"rsub", reals, OperandTypes::Same, true, rsub, has_real_scalars},
    {"mul", reals | bools, OperandTypes::Same, true, mul},
    {"addcmul", reals, OperandTypes::Same, true, addcmul, has_real_scalars},
    {"addcdiv", floats, OperandTypes::Same, true, addcdiv, has_real_scalars},
    {"div", floats, OperandTypes::Same, true, div, has_no_rounding},
    {"reciprocal", floats, OperandTypes::Same, true, reciprocal},
    {"rsqrt", floats, OperandTypes::Same, true, rsqrt},
    {"square", reals | bools, OperandTypes::Same, true, square},
    {"pow", floats, OperandTypes::Same, true, pow, has_common_exponent},
    {"sqrt", floats, OperandTypes::Same, true, SquareRoot::text},
    {"neg", reals, OperandTypes::Same, true, neg},
    {"abs", reals, OperandTypes::Same, true, abs},
    {"floor", floats, OperandTypes::Same, true, Floor::text},
    {"ceil", floats, OperandTypes::Same, true, Ceil::text},
    {"trunc", floats, OperandTypes::Same, true, Trunc::text},
    {"relu", reals, OperandTypes::Same, true, relu},
    {"maximum", reals, OperandTypes::Same, true, maximum},
    {"minimum", reals, OperandTypes::Same, true, minimum},
    {"clamp", reals, OperandTypes::Same, true, clamp, has_a_limit},
    {"hardtanh", floats, OperandTypes::Same, true, hardtanh},
    {"leaky_relu", floats, OperandTypes::Same, true, leaky_relu},
    {"leaky_relu_backward", floats, OperandTypes::Same, true, leaky_relu_backward},
    {"threshold_backward", floats, OperandTypes::Same, true, threshold_backward},
    {"sigmoid_backward", floats, OperandTypes::Same, true, sigmoid_backward},
    {"tanh_backward", floats, OperandTypes::Same, true, tanh_backward},
    {"eq", reals | bools, OperandTypes::Compared, true, compared<'e', 'q'>},
    {"ne", reals | bools, OperandTypes::Compared, true, compared<'n', 'e'>},
    {"lt", reals | bools, OperandTypes::Compared, true, compared<'l', 't'>},
    {"le", reals | bools, OperandTypes::Compared, true, compared<'l', 'e'>},
    {"gt", reals | bools, OperandTypes::Compared, true, compared<'g', 't'>},
    {"ge", reals | bools, OperandTypes::Compared, true, compared<'g', 'e'>},
    {"isnan", floats, OperandTypes::Compared, true, is_nan},
    {"logical_and", bools, OperandTypes::Compared, true, bitwise_and},
    {"logical_or", bools, OperandTypes::Compared, true, bitwise_or},
    {"logical_xor", bools, OperandTypes::Compared, true, bitwise_xor},
    {"logical_not", bools, OperandTypes::Compared, true, logical_not},
    {"bitwise_and", integers | bools, OperandTypes::Same, true, bitwise_and},
    {"bitwise_or", integers | bools, OperandTypes::Same, true, bitwise_or},
    {"bitwise_xor", integers | bools, OperandTypes::Same, true, bitwise_xor},
    {"bitwise_not", integers | bools, OperandTypes::Same, true, bitwise_not},
    {"where", reals | bools, OperandTypes::Condition0, true, where},
    {"masked_fill", reals | bools, OperandTypes::Condition1, true, masked_fill},
    {"exp", narrow_floats, OperandTypes::Same, false, exp},
    {"sigmoid", narrow_floats, OperandTypes::Same, false, sigmoid},
    {"silu", narrow_floats, OperandTypes::Same, false, silu},
    {"tanh", narrow_floats, OperandTypes::Same, false, tanh},
    {"gelu", narrow_floats, OperandTypes::Same, false, gelu},
};

const Formula* formula_of(const cb_graph_node& node) {
  const auto* const found = std::ranges::find(formulas, std::string_view(node.operator_name),
                                              [](const Formula& formula) { return std::string_view(formula.name); });
  return found == std::end(formulas) ? nullptr : found;
}

// The dtype that a node computes in: of its last tensor.
int32_t computed_dtype(const cb_graph_node& node) {
  int32_t dtype = -1;
  for (int i = 0; i < node.argument_count; ++i)
    if (node.arguments[i].kind == CB_TENSOR) dtype = node.arguments[i].as.tensor->dtype;
  return dtype;
}

}  // namespace

bool is_compiled(const cb_graph_node& node, const cb_graph& graph) {
  const Formula* const formula = formula_of(node);
  if (!formula || (!formula->is_exact && !(graph.flags & CB_GRAPH_INEXACT))) return false;
  const int32_t dtype = computed_dtype(node);
  if (dtype < 0 || !(formula->dtypes & CB_DTYPE_BIT(dtype))) return false;
  // To round halves after each operator takes longer than the operators.
  if (is_half(dtype) && !(graph.flags & CB_GRAPH_INEXACT)) return false;
  const int32_t result = formula->types == OperandTypes::Compared ? static_cast<int32_t>(CB_BOOL) : dtype;
  if (graph.tensors[node.output].dtype != result) return false;
  for (int i = 0; i < node.argument_count; ++i) {
    const cb_value& value = node.arguments[i];
    if (value.kind != CB_TENSOR) continue;
    const bool is_condition = (i == 0 && formula->types == OperandTypes::Condition0) ||
                              (i == 1 && formula->types == OperandTypes::Condition1);
    if (value.as.tensor->dtype != (is_condition ? static_cast<int32_t>(CB_BOOL) : dtype)) return false;
  }
  return !formula->accepts || formula->accepts(node);
}

std::string formula_text(const NodeText& node) {
  const int32_t dtype = computed_dtype(node.node);
  node.to.set_dtype(is_half(dtype) ? static_cast<int32_t>(CB_FLOAT32) : dtype);
  return formula_of(node.node)->text(node);
}

}  // namespace candelabra::cpu
