// Elements in host memory at any strides: what a NumPy array or a tensor on such a device looks like to the code that reads it.
#pragma once

#include "call.hpp"

namespace candelabra {

struct HostBlock {
  const char* data = nullptr;
  Dtype dtype = Dtype::Float32;
  Dims sizes;
  Dims strides;  // in bytes; may be negative
  bool writable = true;
  Ref<> owner;  // keeps the memory
  bool has_negative_stride() const {
    for (int i = 0; i < sizes.size(); ++i) {
      if (strides[i] < 0 && sizes[i] > 1) return true;
    }
    return false;
  }
};

// Of a NumPy array, by its __array_struct__; throws TypeError that names the supported dtypes where it is of another.
HostBlock block_of_array(PyObject* array);
// Of a tensor: its own memory where the host can read it, else a copy.
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

// The elements in row-major order, without gaps.
void gather(const HostBlock& block, void* destination);

}  // namespace candelabra
