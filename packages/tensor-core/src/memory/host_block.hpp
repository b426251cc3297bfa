// A strided block of elements in host memory, such as a NumPy array or a tensor.
#pragma once

#include "dispatch/call.hpp"

namespace candelabra {

struct HostBlock {
  const char* data = nullptr;
  Dtype dtype = Dtype::Float32;
  Dims sizes;
  Dims strides;  // in bytes; may be negative
  bool writable = true;
  Ref<> owner;  // keeps the memory alive
  bool has_negative_stride() const {
    for (int i = 0; i < sizes.size(); ++i) {
      if (strides[i] < 0 && sizes[i] > 1) return true;
    }
    return false;
  }
};

// The block of a NumPy array, read from __array_struct__. For an unsupported dtype, throws a
// TypeError that names the supported ones.
HostBlock block_of_array(PyObject* array);
// The block of a tensor: its own memory if the host can read it, else a copy.
HostBlock block_of_tensor(TensorObject* tensor);

// Calls body(element) for every element in row-major order.
template <typename Body>
void for_each_element(const HostBlock& block, Body&& body) {
  const auto walk = [&](auto&& self, int dim, const char* data) -> void {
    if (dim == block.sizes.size()) return body(data);
    for (int64_t i = 0; i < block.sizes[dim]; ++i) self(self, dim + 1, data + i * block.strides[dim]);
  };
  walk(walk, 0, block.data);
}

// Copies the elements in row-major order, without gaps.
void gather(const HostBlock& block, void* destination);

}  // namespace candelabra
