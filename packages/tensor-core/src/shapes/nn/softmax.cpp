// Softmax and log-softmax along one dimension.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

// softmax, log_softmax: the same positions.
void softmax(Call& call) {
  namespace at = positions::softmax;
  const Dtype dtype = call.dtype_or(at::dtype, call.tensor(at::self).dtype);
  if (!is_floating(dtype)) not_implemented(call, dtype);
  call.convert(at::self, dtype);
  call.set_dtype(at::dtype, dtype);
  const TensorObject& self = call.tensor(at::self);
  call.dim(at::dim, self.ndim());
  call.add_output(dtype, self.sizes).inserted = scalar_inserted_dims(self);
  unsqueeze_scalar(call, at::self);
}

// softmax_backward, log_softmax_backward: the same positions.
void softmax_backward(Call& call) {
  namespace at = positions::softmax_backward;
  const Dtype dtype = promote_dtypes(call, {at::grad, at::output});
  call.convert(at::grad, dtype);
  call.convert(at::output, dtype);
  const TensorObject &grad = call.tensor(at::grad), &output = call.tensor(at::output);
  call.dim(at::dim, output.ndim());
  check(grad.sizes == output.sizes, PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes),
        " does not match output of shape ", shown(output.sizes));
  call.add_output(dtype, output.sizes).inserted = scalar_inserted_dims(output);
  unsqueeze_scalar(call, at::grad);
  unsqueeze_scalar(call, at::output);
}

}  // namespace candelabra::shapes
