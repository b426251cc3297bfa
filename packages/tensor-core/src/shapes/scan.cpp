// Running sums and products along one dimension.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

void scan(Call& call) {
  const TensorObject& self = call.tensor(0);
  call.dim(1, self.ndim());
  // A result that is there already decides, so that cumsum_ on int32 counts in int32.
  const Dtype natural = is_integral(self.dtype) ? Dtype::Int64 : self.dtype;
  const Dtype dtype = call.dtype_or(2, call.outputs[0].given ? call.outputs[0].given->dtype : natural);
  Output& output = call.add_output(dtype, self.sizes);
  output.inserted = inserted_dimension(self);
  call.convert(0, dtype);
  call.set_dtype(2, dtype);
  see_dimension(call, 0);
}

void running_log(Call& call) {
  const TensorObject& self = call.tensor(0);
  if (!is_floating(self.dtype) && !is_complex(self.dtype)) not_implemented(call, self.dtype);
  call.dim(1, self.ndim());
  call.add_output(self.dtype, self.sizes).inserted = inserted_dimension(self);
  see_dimension(call, 0);
}

// running_extremum(self, dim, larger): the positions
void running_extremum(Call& call) {
  const TensorObject& self = call.tensor(0);
  if (is_complex(self.dtype)) not_implemented(call, self.dtype);
  call.dim(1, self.ndim());
  call.add_output(Dtype::Int64, self.sizes).inserted = inserted_dimension(self);
  see_dimension(call, 0);
}

}  // namespace candelabra::shapes
