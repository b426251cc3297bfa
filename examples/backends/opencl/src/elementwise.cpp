// Elementwise operators. Their formulas are in kernels/unary.cl, binary.cl and ternary.cl, under
// the name of the operator.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/arguments/indexing.hpp"

#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// The buffer of an operand; numbers have none, and the kernel does not read the output's there.
cl_mem buffer_of(const cb_tensor& tensor, const cb_tensor& out) {
  return memory_of(tensor.flags & CB_TENSOR_NUMBER ? out : tensor);
}

std::string variant(std::string_view name, const Operands& operands, int count) {
  return std::string(name) + (is_flat(operands, count) ? "_flat" : "_strided");
}

void run_unary(Call& call, std::string_view formula, uint64_t parameter = 0) {
  const cb_tensor &out = call.output(), &self = call.tensor(0);
  if (out.numel == 0) return;
  Operands operands = operands_of({&out, &self}, self.dtype);
  operands.parameters[0] = parameter;
  Launch(call, "unary", variant(formula, operands, 2), {{"T", self.dtype}, {"R", out.dtype}})
      .memory(out)
      .memory(self)
      .structure(operands)
      .items(out.numel);
}

void run_binary(Call& call, std::string_view formula, uint64_t parameter = 0) {
  const cb_tensor &out = call.output(), &self = call.tensor(0), &other = call.tensor(1);
  if (out.numel == 0) return;
  const int32_t dtype = self.flags & CB_TENSOR_NUMBER ? other.dtype : self.dtype;
  Operands operands = operands_of({&out, &self, &other}, dtype);
  operands.parameters[0] = parameter;
  Launch(call, "binary", variant(formula, operands, 3), {{"T", dtype}, {"R", out.dtype}})
      .memory(out)
      .memory(buffer_of(self, out))
      .memory(buffer_of(other, out))
      .structure(operands)
      .items(out.numel);
}

void run_ternary(Call& call, std::string_view formula, const cb_tensor& a, const cb_tensor& b, const cb_tensor& c,
                 uint64_t parameter = 0) {
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Operands operands = operands_of({&out, &a, &b, &c}, out.dtype);
  operands.parameters[0] = parameter;
  Launch(call, "ternary", variant(formula, operands, 4), {{"C", a.dtype}, {"T", out.dtype}})
      .memory(out)
      .memory(buffer_of(a, out))
      .memory(buffer_of(b, out))
      .memory(buffer_of(c, out))
      .structure(operands)
      .items(out.numel);
}

// ---- operators without parameters: the formula has the operator's name

void unary(Call& call) {
  run_unary(call, call.name());
}

void binary(Call& call) {
  run_binary(call, call.name());
}

// ---- operators with parameters

void add(Call& call) {
  const arguments::Add args(call);
  run_binary(call, "add", number_bits(*args.alpha, call.output().dtype));
}

void sub(Call& call) {
  const arguments::Sub args(call);
  run_binary(call, "sub", number_bits(*args.alpha, call.output().dtype));
}

void div(Call& call) {
  const arguments::Div args(call);
  if (!kernel::is_floating_dtype(call.output().dtype)) throw not_implemented();
  run_binary(call, args.rounding_mode ? "div_" + std::string(*args.rounding_mode) : "div");
}

void threshold_backward(Call& call) {
  const arguments::ThresholdBackward args(call);
  run_binary(call, "threshold_backward", number_bits(*args.threshold, call.output().dtype));
}

void gelu(Call& call) {
  const arguments::Gelu args(call);
  run_unary(call, args.approximate == "tanh" ? "gelu_tanh" : "gelu");
}

void gelu_backward(Call& call) {
  const arguments::GeluBackward args(call);
  run_binary(call, args.approximate == "tanh" ? "gelu_tanh_backward" : "gelu_backward");
}

void where(Call& call) {
  const arguments::Where args(call);
  run_ternary(call, "where", *args.condition, *args.input, *args.other);
}

void masked_fill(Call& call) {
  const arguments::MaskedFill args(call);
  run_ternary(call, "where", *args.mask, *args.value, *args.self);
}

void lerp(Call& call) {
  const arguments::Lerp args(call);
  run_ternary(call, "lerp", *args.self, *args.end, *args.weight);
}

void addcmul(Call& call) {
  const arguments::Addcmul args(call);
  run_ternary(call, call.name(), *args.self, *args.tensor1, *args.tensor2,
              number_bits(*args.value, call.output().dtype));
}

void clamp(Call& call) {
  const arguments::Clamp args(call);
  const char* formula = args.min && args.max ? "clamp" : args.min ? "clamp_min" : "clamp_max";
  run_ternary(call, formula, *args.self, args.min ? *args.min : *args.self, args.max ? *args.max : *args.self);
}

}  // namespace

void add_elementwise(Table& table) {
  constexpr uint64_t numbers = float_dtypes | integer_dtypes;
  for (const char* name : {"neg", "abs", "sign", "relu", "floor", "ceil", "trunc", "square"})
    table.add<unary>(name, 0, numbers);
  for (const char* name : {"logical_not", "isnan", "isfinite", "isinf"}) table.add<unary>(name, 0, real_dtypes);
  for (const char* name : {"exp",        "exp2",  "expm1", "log",   "log2", "log10", "log1p", "sqrt",   "rsqrt",
                           "reciprocal", "sin",   "cos",   "tan",   "asin", "acos",  "atan",  "sinh",   "cosh",
                           "tanh",       "asinh", "acosh", "atanh", "erf",  "erfc",  "silu",  "sigmoid"})
    table.add<unary>(name, 0, float_dtypes);
  table.add<gelu>("gelu", 0, float_dtypes);

  table.add<add>("add", 0, real_dtypes);
  table.add<sub>("sub", 0, real_dtypes);
  table.add<div>("div", 0, float_dtypes);
  for (const char* name :
       {"mul", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"})
    table.add<binary>(name, 0, real_dtypes);
  for (const char* name : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    table.add<binary>(name, 0, integer_dtypes | bool_dtype);
  table.add<binary>("pow", 0, real_dtypes);
  for (const char* name : {"fmod", "remainder", "atan2", "sigmoid_backward", "tanh_backward", "silu_backward"})
    table.add<binary>(name, 0, float_dtypes);
  table.add<gelu_backward>("gelu_backward", 0, float_dtypes);
  table.add<threshold_backward>("threshold_backward", 0, numbers);

  table.add<where>("where");
  table.add<masked_fill>("masked_fill", 0, real_dtypes);
  table.add<clamp>("clamp", 0, numbers);
  table.add<addcmul>("addcmul", 0, numbers);
  table.add<addcmul>("addcdiv", 0, float_dtypes);
  table.add<lerp>("lerp", 0, float_dtypes);
}

}  // namespace candelabra::opencl
