// What the shape rules of several families share: names for messages, lists of dimensions, layouts.
#pragma once

#include <string_view>

#include "../call.hpp"

namespace candelabra::shapes {

// "add" for add and add_.
std::string_view base_name(const Call& call);

// The dtype as PyTorch's messages write it in C: "float", "long".
const char* c_name(Dtype dtype);

// NotImplementedError: "lerp" not implemented for 'Long'.
[[noreturn]] void not_implemented(const Call& call, Dtype dtype);

// float32 for half precisions: the dtype of statistics.
inline Dtype statistics_dtype(Dtype dtype) {
  return dtype == Dtype::Float16 || dtype == Dtype::BFloat16 ? Dtype::Float32 : dtype;
}

// Throws where this number cannot be an element of this dtype: a complex one in a real tensor, and, where `exactly`, a whole
// number out of the dtype's range.
void check_number_fits(const cb_scalar& number, Dtype dtype, bool exactly);

// Throws where alpha (or another factor) is of a higher category than a result of this dtype.
void check_factor(const Call& call, const char* factor_name, const cb_scalar& factor, Dtype dtype);

// The set of these dimensions; throws where one is named twice. No bits for a tensor without dimensions.
uint64_t dim_set(std::span<const int64_t> dims, int ndim);

// The promoted dtype of these arguments (tensors and numbers; missing ones are skipped).
Dtype promoted(Call& call, std::span<const int> operands);
inline Dtype promoted(Call& call, std::initializer_list<int> operands) {
  return promoted(call, std::span<const int>(operands.begin(), operands.size()));
}

// Broadcasts operands of one computation, which have their dtypes already, and adds the output of an elementwise operator.
Output& combine(Call& call, std::span<const int> operands, Dtype result);
inline Output& combine(Call& call, std::initializer_list<int> operands, Dtype result) {
  return combine(call, std::span<const int>(operands.begin(), operands.size()), result);
}

// A tensor without dimensions is seen as one-dimensional of size 1.
void see_dimension(Call& call, int i);
inline uint64_t inserted_dimension(const TensorObject& tensor) {
  return tensor.ndim() == 0 ? 1 : 0;
}

// Whether results of this tensor, a batch of images or of volumes, are to be in channels-last order, and making an argument
// contiguous in one of the two orders.
inline bool prefers_channels_last(const TensorObject& tensor) {
  if (tensor.contiguous) return false;
  return tensor.ndim() == 4 ? is_channels_last(tensor) : tensor.ndim() == 5 && is_in_format(tensor, MemoryFormat::ChannelsLast3d);
}
void make_layout(Call& call, int i, bool channels_last);
void set_layout(Output& output, bool channels_last);

// A list with one entry for each spatial dimension; a single entry stands for all.
void spread_list(Call& call, int i, int spatial, const char* list_name, const char* what);

// Throws where a number of this list is larger than what geometry can be computed with safely, and kernels take.
void check_magnitude(const Call& call, std::span<const int64_t> values, const char* list_name);

}  // namespace candelabra::shapes
