// Layouts of tensors as kernels see them.
#pragma once

#include <optional>

#include "dispatch/call.hpp"

namespace candelabra::runner {

// Whether strides agree; those of a size of 1 mean nothing.
bool equal_strides(std::span<const int64_t> sizes, std::span<const int64_t> a, std::span<const int64_t> b);
// Whether two descriptors have the same dtype, sizes and strides.
bool is_same_layout(const cb_tensor& a, const cb_tensor& b);
// Whether a tensor without dimensions that is broadcast may look like this.
bool may_be_broadcast_scalar(const cb_tensor& tensor);
// The strides of the dimensions that the result has, without those that only the kernel sees. None
// if the sizes are not those of the result.
std::optional<Dims> without_seen_dims(const cb_tensor& tensor, const Output& expected);
// Whether two indices may mean one element.
bool repeats_elements(const TensorObject& tensor);

// Calls function(tensor) for each tensor of an argument.
template <typename F>
void for_each_tensor(const cb_value& value, F&& function) {
  if (value.kind == CB_TENSOR) function(*value.as.tensor);
  if (value.kind != CB_TENSORS) return;
  for (int32_t k = 0; k < value.count; ++k)
    if (value.as.tensors[k]) function(*value.as.tensors[k]);
}

}  // namespace candelabra::runner
