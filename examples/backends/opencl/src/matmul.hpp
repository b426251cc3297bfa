// Batches of matrix products, for linalg.cpp and convolution.cpp.
#ifndef CANDELABRA_OPENCL_MATMUL_HPP
#define CANDELABRA_OPENCL_MATMUL_HPP

#include "runtime/launch.hpp"

namespace candelabra::opencl {

// A matrix, or a batch of them, in a buffer. Strides are of the batch, rows and columns, in
// elements; the offset is in bytes.
struct Matrix {
  cl_mem memory = nullptr;
  uint64_t offset = 0;
  std::array<int64_t, 3> strides = {};
};

// out = beta * bias + alpha * a b. The bias may be the output.
struct Multiplication {
  int32_t dtype;
  int64_t batch, rows, inner, columns;
  Matrix out, a, b;
  std::optional<Matrix> bias;
  double alpha = 1, beta = 1;
};

void multiply(const Call& call, const Multiplication& multiplication);

}  // namespace candelabra::opencl

#endif
