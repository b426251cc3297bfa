// The fused steps of SGD and Adam; see kernels/optimizer.cl.
#include "candelabra/arguments/optimizer.hpp"

#include <cmath>

#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// The struct of the same name in kernels/optimizer.cl.
struct Adam {
  uint64_t beta1, beta2, eps, weight_decay, decay, step_size, correction;
  int64_t decoupled, maximize;
};

void sgd(Call& call) {
  const arguments::FusedSgd args(call);
  for (size_t k = 0; k < args.params.size(); ++k) {
    const cb_tensor& param = *args.params[k];
    if (param.numel == 0) continue;
    const bool has_momentum = args.momentum != 0;
    const cb_tensor& buffer = has_momentum ? *args.momentum_buffers[k] : param;
    Operands operands = operands_of({&param, args.grads[k], &buffer}, param.dtype);
    const double numbers[] = {args.lr, args.weight_decay, args.momentum, args.dampening};
    for (size_t n = 0; n < 4; ++n) operands.parameters[n] = number_bits(numbers[n], param.dtype);
    Launch(call, "optimizer", "sgd", {{"T", param.dtype}})
        .memory(param)
        .memory(*args.grads[k])
        .memory(buffer)
        .structure(operands)
        .value(args.nesterov)
        .value(args.maximize)
        .value(args.first)
        .value(has_momentum)
        .items(param.numel);
  }
}

void adam(Call& call) {
  const arguments::FusedAdam args(call);
  if (args.amsgrad) throw not_implemented();
  const auto step = static_cast<double>(args.step);
  for (size_t k = 0; k < args.params.size(); ++k) {
    const cb_tensor& param = *args.params[k];
    if (param.numel == 0) continue;
    const auto bits = [&](double number) { return number_bits(number, param.dtype); };
    const Adam numbers = {.beta1 = bits(args.beta1),
                          .beta2 = bits(args.beta2),
                          .eps = bits(args.eps),
                          .weight_decay = bits(args.weight_decay),
                          .decay = bits(1 - args.lr * args.weight_decay),
                          .step_size = bits(args.lr / (1 - std::pow(args.beta1, step))),
                          .correction = bits(std::sqrt(1 - std::pow(args.beta2, step))),
                          .decoupled = args.decoupled,
                          .maximize = args.maximize};
    Launch(call, "optimizer", "adam", {{"T", param.dtype}})
        .memory(param)
        .memory(*args.grads[k])
        .memory(*args.exp_avgs[k])
        .memory(*args.exp_avg_sqs[k])
        .structure(operands_of({&param, args.grads[k], args.exp_avgs[k], args.exp_avg_sqs[k]}, param.dtype))
        .structure(numbers)
        .items(param.numel);
  }
}

}  // namespace

void add_optimizer(Table& table) {
  table.add<sgd>("_fused_sgd_", 0, float_dtypes);
  table.add<adam>("_fused_adam_", 0, float_dtypes);
}

}  // namespace candelabra::opencl
