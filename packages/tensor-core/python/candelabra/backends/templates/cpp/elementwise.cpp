// Elementwise operators, on the formulas that Candelabra's own backends use. A new operator is a
// new line at the end. Every tensor argument has the sizes of the output: the core broadcasts.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/formulas/arithmetic.hpp"
#include "candelabra/formulas/compare.hpp"
#include "candelabra/formulas/parts.hpp"
#include "candelabra/formulas/unary.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace arguments = candelabra::arguments;
namespace formulas = candelabra::formulas;
using candelabra::kernel::scalar_to;

namespace {

template <typename Formula, typename Args, typename List>
void unary(Call& call) {
  const Args args(call);
  dispatch<List>(call.output().dtype, [&]<typename T>() { map<T, T>(call.output(), Formula{}, *args.self); });
}

// The second argument has one of two names.
template <typename Args>
const cb_tensor& second_of(const Args& args) {
  if constexpr (requires { args.exponent; })
    return *args.exponent;
  else
    return *args.other;
}

template <typename Formula, typename Args, typename List>
void binary(Call& call) {
  const Args args(call);
  dispatch<List>(call.output().dtype,
                 [&]<typename T>() { map<T, T>(call.output(), Formula{}, *args.self, second_of(args)); });
}

template <typename Formula, typename Args>
void compare(Call& call) {
  const Args args(call);
  dispatch<AllTypes>(args.self->dtype,
                     [&]<typename T>() { map<bool, T>(call.output(), Formula{}, *args.self, *args.other); });
}

// a + alpha b
void add(Call& call) {
  const arguments::Add args(call);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map<T, T>(call.output(), formulas::AddScaled<C>{scalar_to<C>(*args.alpha)}, *args.self, *args.other);
  });
}
void sub(Call& call) {
  const arguments::Sub args(call);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const C alpha = static_cast<C>(-scalar_to<C>(*args.alpha));
    map<T, T>(call.output(), formulas::AddScaled<C>{alpha}, *args.self, *args.other);
  });
}

// ---- division

// Checked before anything is written: a kernel that fails halfway has changed its output.
template <typename T>
void check_divisor(const cb_tensor& out, const cb_tensor& b) {
  if constexpr (std::is_integral_v<T>) {
    const Input<T> divisor(b);
    for_each(geometry<2>({&out, &b}), [&](auto offset) {
      if (divisor[offset[1]] == 0) throw failure(CB_RUNTIME_ERROR, "ZeroDivisionError");
    });
  }
}

template <formulas::DivisionKind Kind, typename Args>
void divide_as(Call& call) {
  using formulas::DivisionKind;
  const Args args(call);
  const cb_tensor& out = call.output();
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    check_divisor<T>(out, *args.other);
    const auto compute = [](auto a, auto b) {
      if constexpr (std::is_integral_v<T>)
        return formulas::divide_integers<Kind>(a, b);
      else if constexpr (Kind == DivisionKind::Trunc)
        return formulas::FloatTruncDivide{}(a, b);
      else if constexpr (Kind == DivisionKind::Floor)
        return formulas::FloatFloorDivide::of(a, b, std::fmod(a, b));
      else
        return std::fmod(a, b);
    };
    map<T, T>(out, compute, *args.self, *args.other);
  });
}

void div(Call& call) {
  const arguments::Div args(call);
  if (!args.rounding_mode) return binary<formulas::Divide, arguments::Div, FloatTypes>(call);
  if (*args.rounding_mode == "floor") return divide_as<formulas::DivisionKind::Floor, arguments::Div>(call);
  divide_as<formulas::DivisionKind::Trunc, arguments::Div>(call);
}

// Moves elements, of any dtype.
void where(Call& call) {
  const arguments::Where args(call);
  const cb_tensor &out = call.output(), &condition = *args.condition, &a = *args.input, &b = *args.other;
  const size_t bytes = cb_dtype_size(out.dtype);
  const auto size = static_cast<int64_t>(bytes);
  char *const to = memory_of(out), *const first = memory_of(a), *const second = memory_of(b);
  const Input<bool> holds(condition);
  for_each(geometry<4>({&out, &condition, &a, &b}), [&](auto offset) {
    std::memmove(to + offset[0] * size, holds[offset[1]] ? first + offset[2] * size : second + offset[3] * size, bytes);
  });
}

template <typename Formula, typename Args, typename List>
void add_unary(Table& table, const char* name) {
  table.add<unary<Formula, Args, List>>(name, 0, mask<List>);
}
template <typename Formula, typename Args, typename List>
void add_binary(Table& table, const char* name) {
  table.add<binary<Formula, Args, List>>(name, 0, mask<List>);
}
template <typename Formula, typename Args>
void add_comparison(Table& table, const char* name) {
  table.add<compare<Formula, Args>>(name, 0, mask<AllTypes>);
}

}  // namespace

void add_elementwise_kernels(Table& table) {
  add_unary<formulas::Neg, arguments::Neg, RealTypes>(table, "neg");
  add_unary<formulas::Abs, arguments::Abs, RealTypes>(table, "abs");
  add_unary<formulas::Floor, arguments::Floor, RealTypes>(table, "floor");
  add_unary<formulas::Exp, arguments::Exp, FloatTypes>(table, "exp");
  add_unary<formulas::Log, arguments::Log, FloatTypes>(table, "log");
  add_unary<formulas::Sqrt, arguments::Sqrt, FloatTypes>(table, "sqrt");
  add_unary<formulas::Sin, arguments::Sin, FloatTypes>(table, "sin");
  add_unary<formulas::Cos, arguments::Cos, FloatTypes>(table, "cos");
  add_unary<formulas::Tanh, arguments::Tanh, FloatTypes>(table, "tanh");
  add_unary<formulas::Erf, arguments::Erf, FloatTypes>(table, "erf");
  add_unary<formulas::Expm1, arguments::Expm1, FloatTypes>(table, "expm1");
  add_unary<formulas::Log1p, arguments::Log1p, FloatTypes>(table, "log1p");
  table.add<add>("add", 0, mask<AllTypes>);
  table.add<sub>("sub", 0, mask<RealTypes>);
  add_binary<formulas::Mul, arguments::Mul, AllTypes>(table, "mul");
  table.add<div>("div", 0, mask<RealTypes>);
  add_binary<formulas::Power, arguments::Pow, RealTypes>(table, "pow");
  add_binary<formulas::Maximum, arguments::Maximum, AllTypes>(table, "maximum");
  add_binary<formulas::Minimum, arguments::Minimum, AllTypes>(table, "minimum");
  table.add<divide_as<formulas::DivisionKind::Fmod, arguments::Fmod>>("fmod", 0, mask<RealTypes>);
  add_binary<formulas::Atan2, arguments::Atan2, FloatTypes>(table, "atan2");
  add_binary<formulas::BitwiseAnd, arguments::BitwiseAnd, BitTypes>(table, "bitwise_and");
  add_binary<formulas::BitwiseOr, arguments::BitwiseOr, BitTypes>(table, "bitwise_or");
  add_binary<formulas::BitwiseXor, arguments::BitwiseXor, BitTypes>(table, "bitwise_xor");
  add_comparison<formulas::Equal, arguments::Eq>(table, "eq");
  add_comparison<formulas::NotEqual, arguments::Ne>(table, "ne");
  add_comparison<formulas::Less, arguments::Lt>(table, "lt");
  add_comparison<formulas::LessEqual, arguments::Le>(table, "le");
  table.add<where>("where");
}
