// Elementwise operators, on the formulas that Candelabra's own backends use. A new operator is a new
// line at the end. Every tensor argument has the sizes of the output: the core broadcasts.
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

template <typename Formula, typename List>
void unary(Call& call) {
  const cb_tensor& out = call.output();
  dispatch<List>(out.dtype, [&]<typename T>() { map<T, T>(out, Formula{}, call.tensor(0)); });
}

template <typename Formula, typename List>
void binary(Call& call) {
  const cb_tensor& out = call.output();
  dispatch<List>(out.dtype, [&]<typename T>() { map<T, T>(out, Formula{}, call.tensor(0), call.tensor(1)); });
}

template <typename Formula>
void compare(Call& call) {
  const cb_tensor &a = call.tensor(0), &b = call.tensor(1);
  const int32_t dtype = a.flags & CB_TENSOR_NUMBER ? b.dtype : a.dtype;
  dispatch<AllTypes>(dtype, [&]<typename T>() { map<bool, T>(call.output(), Formula{}, a, b); });
}

// a + alpha b
void add(Call& call) {
  const arguments::Add args(call);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map<T, T>(call.output(), formulas::AddScaled<C>{scalar_to<C>(*args.alpha)}, call.tensor(0), call.tensor(1));
  });
}
void sub(Call& call) {
  const arguments::Sub args(call);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const C alpha = static_cast<C>(-scalar_to<C>(*args.alpha));
    map<T, T>(call.output(), formulas::AddScaled<C>{alpha}, call.tensor(0), call.tensor(1));
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

template <formulas::DivisionKind Kind>
void divide_as(Call& call) {
  using formulas::DivisionKind;
  const cb_tensor& out = call.output();
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    check_divisor<T>(out, call.tensor(1));
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
    map<T, T>(out, compute, call.tensor(0), call.tensor(1));
  });
}

void div(Call& call) {
  const arguments::Div args(call);
  if (!args.rounding_mode) return binary<formulas::Divide, FloatTypes>(call);
  if (*args.rounding_mode == "floor") return divide_as<formulas::DivisionKind::Floor>(call);
  divide_as<formulas::DivisionKind::Trunc>(call);
}

// Moves elements, of any dtype.
void where(Call& call) {
  const cb_tensor &out = call.output(), &condition = call.tensor(0), &a = call.tensor(1), &b = call.tensor(2);
  const size_t bytes = cb_dtype_size(out.dtype);
  const auto size = static_cast<int64_t>(bytes);
  char *const to = memory_of(out), *const first = memory_of(a), *const second = memory_of(b);
  const Input<bool> holds(condition);
  for_each(geometry<4>({&out, &condition, &a, &b}), [&](auto offset) {
    std::memmove(to + offset[0] * size, holds[offset[1]] ? first + offset[2] * size : second + offset[3] * size, bytes);
  });
}

template <typename Formula, typename List>
void add_unary(Table& table, const char* name) {
  table.add<unary<Formula, List>>(name, 0, mask<List>);
}
template <typename Formula, typename List>
void add_binary(Table& table, const char* name) {
  table.add<binary<Formula, List>>(name, 0, mask<List>);
}

}  // namespace

void add_elementwise_kernels(Table& table) {
  add_unary<formulas::Neg, RealTypes>(table, "neg");
  add_unary<formulas::Abs, RealTypes>(table, "abs");
  add_unary<formulas::Floor, RealTypes>(table, "floor");
  add_unary<formulas::Exp, FloatTypes>(table, "exp");
  add_unary<formulas::Log, FloatTypes>(table, "log");
  add_unary<formulas::Sqrt, FloatTypes>(table, "sqrt");
  add_unary<formulas::Sin, FloatTypes>(table, "sin");
  add_unary<formulas::Cos, FloatTypes>(table, "cos");
  add_unary<formulas::Tanh, FloatTypes>(table, "tanh");
  add_unary<formulas::Erf, FloatTypes>(table, "erf");
  add_unary<formulas::Expm1, FloatTypes>(table, "expm1");
  add_unary<formulas::Log1p, FloatTypes>(table, "log1p");
  table.add<add>("add", 0, mask<AllTypes>);
  table.add<sub>("sub", 0, mask<RealTypes>);
  add_binary<formulas::Mul, AllTypes>(table, "mul");
  table.add<div>("div", 0, mask<RealTypes>);
  add_binary<formulas::Power, RealTypes>(table, "pow");
  add_binary<formulas::Maximum, AllTypes>(table, "maximum");
  add_binary<formulas::Minimum, AllTypes>(table, "minimum");
  table.add<divide_as<formulas::DivisionKind::Fmod>>("fmod", 0, mask<RealTypes>);
  add_binary<formulas::Atan2, FloatTypes>(table, "atan2");
  add_binary<formulas::BitwiseAnd, BitTypes>(table, "bitwise_and");
  add_binary<formulas::BitwiseOr, BitTypes>(table, "bitwise_or");
  add_binary<formulas::BitwiseXor, BitTypes>(table, "bitwise_xor");
  table.add<compare<formulas::Equal>>("eq", 0, mask<AllTypes>);
  table.add<compare<formulas::NotEqual>>("ne", 0, mask<AllTypes>);
  table.add<compare<formulas::Less>>("lt", 0, mask<AllTypes>);
  table.add<compare<formulas::LessEqual>>("le", 0, mask<AllTypes>);
  table.add<where>("where");
}
