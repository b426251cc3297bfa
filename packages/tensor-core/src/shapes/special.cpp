// Special functions whose results are not those of other elementwise operators.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

void divisor(Call& call) {
  const Dtype dtype = promoted(call, {0, 1});
  if (!is_integral(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
  call.convert(0, dtype);
  call.convert(1, dtype);
  combine(call, {0, 1}, dtype);
}

void frexp(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(is_floating(self.dtype), PyExc_RuntimeError, "torch.frexp() only supports floating-point dtypes, but got ",
        info(self.dtype).type_name);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, self.sizes);
}

}  // namespace candelabra::shapes
