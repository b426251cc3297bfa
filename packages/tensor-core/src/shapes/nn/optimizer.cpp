// Optimizer steps over lists of parameters.
#include <algorithm>
#include <initializer_list>

#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// All optimizers begin with params and grads; the lists after them hold the state. Only those among
// `optional` may be empty.
void check_lists(Call& call, std::initializer_list<int> optional) {
  namespace at = positions::fused_sgd;
  const Argument& params = call[at::params];
  for (int i = 0; i < params.count; ++i) {
    const TensorObject& param = *params.tensors[i];
    if (!is_floating(param.dtype)) not_implemented(call, param.dtype);
    check(!may_overlap_itself(param), PyExc_RuntimeError, base_name(call), "(): parameter ", i,
          ": unsupported operation: more than one element of the written-to tensor refers to a single memory location");
  }
  for (int list = at::grads; list < call.argument_count && call[list].kind == ArgumentKind::Tensors; ++list) {
    Argument& others = call[list];
    const bool may_be_empty = std::ranges::find(optional, list) != optional.end();
    check(others.count == params.count || (others.count == 0 && may_be_empty), PyExc_RuntimeError, base_name(call),
          "(): expected one entry for each of ", params.count, " parameters in list ", list, ", but got ",
          others.count);
    for (int i = 0; i < others.count; ++i) {
      const TensorObject &param = *params.tensors[i], &other = *others.tensors[i];
      if (!(other.sizes == param.sizes) || other.dtype != param.dtype || other.device() != param.device()) {
        raise(PyExc_RuntimeError, base_name(call), "(): entry ", i, " of list ", list, " is of shape ",
              shown(other.sizes), ", ", name(other.dtype), ", on ", to_text(other.device()),
              ", but its parameter of shape ", shown(param.sizes), ", ", name(param.dtype), ", on ",
              to_text(param.device()));
      }
      // A gradient gets the strides of its parameter: kernels iterate over both with one index.
      if (list == at::grads && !(other.strides == param.strides) && is_dense_and_non_overlapping(param)) {
        TensorRef ordered = empty_strided(param.sizes, param.strides, param.dtype, param.device());
        copy_into(ordered.get(), others.tensors[i]);
        others.tensors[i] = call.keep(std::move(ordered));
      }
    }
  }
}

// Throws if an option is on whose state is missing.
void check_state(const Call& call, int list, bool is_on, const char* option) {
  check(!is_on || call.arguments[list].count == call.arguments[positions::fused_sgd::params].count, PyExc_RuntimeError,
        base_name(call), "(): ", option, " needs ", call.op.schema.parameters[static_cast<size_t>(list)].name,
        ", one entry for each of the parameters");
}

void check_step(const Call& call, int step) {
  check(call.integer(step) >= 1, PyExc_ValueError, base_name(call), "(): step counts from 1, but got ",
        call.integer(step));
}

}  // namespace

void optimizer(Call& call) {
  check_lists(call, {});
}

// The last argument is the number of the step.
void optimizer_with_step(Call& call) {
  check_lists(call, {});
  check_step(call, call.argument_count - 1);
}

// Without buffers there is no momentum.
void fused_sgd(Call& call) {
  check_lists(call, {positions::fused_sgd::momentum_buffers});
}

void fused_adam(Call& call) {
  namespace at = positions::fused_adam;
  check_lists(call, {at::max_exp_avg_sqs});
  check_state(call, at::max_exp_avg_sqs, call.boolean(at::amsgrad), "amsgrad");
  check_step(call, at::step);
}

void fused_rmsprop(Call& call) {
  namespace at = positions::fused_rmsprop;
  check_lists(call, {at::grad_avgs, at::momentum_buffers});
  check_state(call, at::grad_avgs, call.boolean(at::centered), "centered");
  check_state(call, at::momentum_buffers, call[at::momentum].f > 0, "momentum");
}

}  // namespace candelabra::shapes
