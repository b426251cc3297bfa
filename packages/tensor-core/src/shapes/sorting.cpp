// Sorting and selection along one dimension.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void sorted_results(Call& call, const Dims& sizes) {
  const TensorObject& self = call.tensor(0);
  check(!is_complex(self.dtype), PyExc_RuntimeError, base_name(call), "(): complex dtypes have no order, but got ",
        info(self.dtype).type_name, "; sort by real part or abs() instead");
  for (Dtype dtype : {self.dtype, Dtype::Int64}) call.add_output(dtype, sizes).inserted = inserted_dimension(self);
  see_dimension(call, 0);
}

}  // namespace

void sort(Call& call) {
  const TensorObject& self = call.tensor(0);
  call.dim(1, self.ndim());
  sorted_results(call, self.sizes);
}

void topk(Call& call) {
  const TensorObject& self = call.tensor(0);
  const int dim = call.dim(2, self.ndim());
  const int64_t k = call.integer(1), count = self.ndim() == 0 ? 1 : self.sizes[dim];
  check(k >= 0 && k <= count, PyExc_RuntimeError, "topk(): selected index k out of range: k is ", k, ", and dimension ", dim,
        " of shape ", shown(self.sizes), " has ", count, " elements");
  Dims sizes = self.sizes;
  if (self.ndim() == 0) {
    call.set_int(1, 1);  // a result without dimensions holds one element
  } else {
    sizes[dim] = k;
  }
  sorted_results(call, sizes);
}

}  // namespace candelabra::shapes
