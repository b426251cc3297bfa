// 1-D slices along a dimension, as the operands of kernels.
#ifndef CANDELABRA_OPENCL_SLICES_HPP
#define CANDELABRA_OPENCL_SLICES_HPP

#include "runtime/launch.hpp"

namespace candelabra::opencl {

// The struct of the same name in kernels/types.cl.
struct Along {
  int64_t size;
  int64_t steps[max_operands];
};

struct Slices {
  Operands operands;  // one element of each slice
  Along along;
};

// The slices along `dim`. The sizes of the tensors are equal but for `dim`, where `size` counts.
Slices slices_of(std::initializer_list<const cb_tensor*> tensors, int64_t dim, int64_t size);

// The power of 2 that a slice has places for in the result of sort_order().
int64_t padded_size(const Slices& slices);
// Writes the indices that sort each slice of operand 2, as int64: padded_size() for each slice, of
// which those beyond the slice come last. Equal elements keep their order.
void sort_order(const Call& call, cl_mem order, cl_mem self, int32_t dtype, const Slices& slices, bool descending);

}  // namespace candelabra::opencl

#endif
