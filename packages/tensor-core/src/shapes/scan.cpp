// Cumulative sums, products, maxima and minima along one dimension.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

// cumsum, cumprod: the same positions.
void scan(Call& call) {
  namespace at = positions::cumsum;
  const TensorObject& self = call.tensor(at::self);
  call.dim(at::dim, self.ndim());
  // A given result decides the dtype: cumsum_ of an int32 tensor sums in int32.
  const Dtype natural = is_integral(self.dtype) ? Dtype::Int64 : self.dtype;
  const Dtype dtype = call.dtype_or(at::dtype, call.outputs[0].given ? call.outputs[0].given->dtype : natural);
  Output& output = call.add_output(dtype, self.sizes);
  output.inserted = scalar_inserted_dims(self);
  call.convert(at::self, dtype);
  call.set_dtype(at::dtype, dtype);
  unsqueeze_scalar(call, at::self);
}

void logcumsumexp(Call& call) {
  namespace at = positions::logcumsumexp;
  const TensorObject& self = call.tensor(at::self);
  if (!is_floating(self.dtype) && !is_complex(self.dtype)) not_implemented(call, self.dtype);
  call.dim(at::dim, self.ndim());
  call.add_output(self.dtype, self.sizes).inserted = scalar_inserted_dims(self);
  unsqueeze_scalar(call, at::self);
}

// _cummax_cummin, _lu_pivots_to_permutation: self and dim at the same positions. The results are
// indices.
void cummax_cummin(Call& call) {
  namespace at = positions::cummax_cummin;
  const TensorObject& self = call.tensor(at::self);
  if (is_complex(self.dtype)) not_implemented(call, self.dtype);
  call.dim(at::dim, self.ndim());
  call.add_output(Dtype::Int64, self.sizes).inserted = scalar_inserted_dims(self);
  unsqueeze_scalar(call, at::self);
}

}  // namespace candelabra::shapes
