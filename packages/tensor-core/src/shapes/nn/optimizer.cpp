// Optimizer steps over lists of parameters.
#include "candelabra/positions.hpp"
#include "operators/schema.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

// All optimizers begin with params and grads; the lists after them hold the state.
void optimizer(Call& call) {
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
    check(others.count == params.count || (others.count == 0 && list != at::grads), PyExc_RuntimeError, base_name(call),
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

}  // namespace candelabra::shapes
