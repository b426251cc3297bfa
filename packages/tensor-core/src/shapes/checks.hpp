// Checks and helpers that the shape rules of several families share.
#pragma once

#include <string_view>

#include "dispatch/call.hpp"

namespace candelabra::shapes {

// The operator's name without the underscore of the in-place variant.
std::string_view base_name(const Call& call);

// The C++ name of the dtype, which some of PyTorch's messages use: "float", "long".
const char* cpp_type_name(Dtype dtype);

// Throws NotImplementedError: "lerp" not implemented for 'Long'.
[[noreturn]] void not_implemented(const Call& call, Dtype dtype);

// The dtype of statistics: float32 for half precisions, else the same.
inline Dtype statistics_dtype(Dtype dtype) {
  return dtype == Dtype::Float16 || dtype == Dtype::BFloat16 ? Dtype::Float32 : dtype;
}

// Throws if the number cannot be an element of this dtype: a complex number in a real tensor or,
// if `exactly`, a number out of the dtype's range.
void check_number_fits(const cb_scalar& number, Dtype dtype, bool exactly);

// Throws if a factor such as alpha is of a higher category than the result's dtype. The categories
// are bool, integer, float and complex.
void check_factor(const Call& call, const char* factor_name, const cb_scalar& factor, Dtype dtype);

// The dimensions as a bit set, empty if ndim is 0. Throws if one is named twice.
uint64_t dim_set(std::span<const int64_t> dims, int ndim);

// The promoted dtype of these arguments, tensors or numbers. Missing ones are skipped.
Dtype promote_dtypes(Call& call, std::span<const int> operands);
inline Dtype promote_dtypes(Call& call, std::initializer_list<int> operands) {
  return promote_dtypes(call, std::span<const int>(operands.begin(), operands.size()));
}

// Broadcasts the operands, already converted, of an elementwise operator and adds its output.
Output& combine(Call& call, std::span<const int> operands, Dtype result);
inline Output& combine(Call& call, std::initializer_list<int> operands, Dtype result) {
  return combine(call, std::span<const int>(operands.begin(), operands.size()), result);
}

// Makes the kernel see an argument without dimensions as one of shape (1).
void unsqueeze_scalar(Call& call, int i);
// Output::inserted for a result whose sizes are those of this tensor.
inline uint64_t scalar_inserted_dims(const TensorObject& tensor) {
  return tensor.ndim() == 0 ? 1 : 0;
}

// Whether this batch of images or volumes is channels-last; results then are, too.
inline bool is_channels_last_batch(const TensorObject& tensor) {
  if (tensor.contiguous) return false;
  return tensor.ndim() == 4 ? is_channels_last(tensor)
                            : tensor.ndim() == 5 && is_in_format(tensor, MemoryFormat::ChannelsLast3d);
}
// Makes an argument contiguous, in channels-last or row-major order.
void make_layout(Call& call, int i, bool channels_last);
void set_layout(Output& output, bool channels_last);

// Expands a list of one entry to all spatial dimensions; throws on other lengths.
void expand_list(Call& call, int i, int spatial, const char* list_name, const char* what);

// Throws if an entry does not fit in int32: larger ones would overflow in the computation of sizes
// and in kernels.
void check_magnitude(const Call& call, std::span<const int64_t> values, const char* list_name);

}  // namespace candelabra::shapes
