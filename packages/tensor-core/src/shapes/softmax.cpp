// Softmax and log-softmax along one dimension.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

void softmax(Call& call) {
  const Dtype dtype = call.dtype_or(2, call.tensor(0).dtype);
  if (!is_floating(dtype)) not_implemented(call, dtype);
  call.convert(0, dtype);
  call.set_dtype(2, dtype);
  const TensorObject& self = call.tensor(0);
  call.dim(1, self.ndim());
  call.add_output(dtype, self.sizes).inserted = inserted_dimension(self);
  see_dimension(call, 0);
}

void softmax_backward(Call& call) {
  const Dtype dtype = promoted(call, {0, 1});
  call.convert(0, dtype);
  call.convert(1, dtype);
  const TensorObject &grad = call.tensor(0), &output = call.tensor(1);
  call.dim(2, output.ndim());
  check(grad.sizes == output.sizes, PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes),
        " does not match output of shape ", shown(output.sizes));
  call.add_output(dtype, output.sizes).inserted = inserted_dimension(output);
  see_dimension(call, 0);
  see_dimension(call, 1);
}

}  // namespace candelabra::shapes
