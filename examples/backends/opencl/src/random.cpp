// Random numbers, the same as on every device; see kernels/random.cl.
#include "candelabra/arguments/random.hpp"

#include <cmath>

#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// uniform < p as a comparison of the 24 bits of the draw: (word >> 8) < threshold.
int64_t threshold_of(double p) {
  return static_cast<int64_t>(std::ceil(p * 0x1p24));
}

// Operand 0 is walked in row-major order, because element i gets draw i.
Operands row_major(std::initializer_list<const cb_tensor*> tensors, double first = 0, double second = 0) {
  const int32_t dtype = (*tensors.begin())->dtype;
  Operands operands = operands_of(tensors, dtype, true);
  operands.parameters[0] = number_bits(first, dtype);
  operands.parameters[1] = number_bits(second, dtype);
  return operands;
}

void draw(Call& call, double first, double second) {
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const std::string options = out.dtype == CB_FLOAT64 ? "-D R_IS_FLOAT64" : "";
  Launch(call, "random", std::string(call.name()), {{"R", out.dtype}}, options)
      .memory(out)
      .structure(row_major({&out}, first, second))
      .bits(call.seed())
      .bits(call.offset())
      .items(out.numel);
}

void uniform(Call& call) {
  const arguments::Uniform args(call);
  draw(call, args.from, args.to);
}

void normal(Call& call) {
  const arguments::Normal args(call);
  draw(call, args.mean, args.std);
}

void bernoulli(Call& call) {
  const arguments::BernoulliInPlace args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Launch(call, "random", "bernoulli_", {{"R", out.dtype}})
      .memory(out)
      .structure(row_major({&out}))
      .bits(call.seed())
      .bits(call.offset())
      .value(threshold_of(args.p))
      .items(out.numel);
}

void random_range(Call& call) {
  const arguments::RandomRange args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Launch(call, "random", "random_range_", {{"R", out.dtype}})
      .memory(out)
      .structure(row_major({&out}))
      .bits(call.seed())
      .bits(call.offset())
      .value(args.low)
      .value(args.high)
      .items(out.numel);
}

void dropout(Call& call) {
  const arguments::NativeDropout args(call);
  const cb_tensor &out = call.output(0), &mask = call.output(1);
  if (out.numel == 0) return;
  Launch(call, "random", "native_dropout", {{"R", out.dtype}})
      .memory(out)
      .memory(mask)
      .memory(*args.input)
      .structure(row_major({&out, &mask, args.input}, args.p < 1 ? 1 / (1 - args.p) : 0))
      .bits(call.seed())
      .bits(call.offset())
      .value(threshold_of(args.p))
      .items(out.numel);
}

}  // namespace

void add_random(Table& table) {
  table.add<uniform>("uniform_", 0, float_dtypes);
  table.add<normal>("normal_", 0, float_dtypes);
  table.add<bernoulli>("bernoulli_", 0, real_dtypes);
  table.add<random_range>("random_range_", 0, real_dtypes);
  table.add<dropout>("native_dropout", 0, float_dtypes);
}

}  // namespace candelabra::opencl
