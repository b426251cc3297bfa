// Elementwise operators with dtype rules of their own.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

// gcd, lcm: the same positions.
void divisor(Call& call) {
  namespace at = positions::gcd;
  const Dtype dtype = promote_dtypes(call, {at::self, at::other});
  if (!is_integral(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
  call.convert(at::self, dtype);
  call.convert(at::other, dtype);
  combine(call, {at::self, at::other}, dtype);
}

void frexp(Call& call) {
  namespace at = positions::frexp;
  const TensorObject& self = call.tensor(at::self);
  check(is_floating(self.dtype), PyExc_RuntimeError, "torch.frexp() only supports floating-point dtypes, but got ",
        info(self.dtype).type_name);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, self.sizes);
}

}  // namespace candelabra::shapes
