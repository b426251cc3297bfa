// 1-D slices along a dimension, as the operands of kernels.
#ifndef CANDELABRA_OPENCL_SLICES_HPP
#define CANDELABRA_OPENCL_SLICES_HPP

#include "launch.hpp"

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

}  // namespace candelabra::opencl

#endif
