// Elements of tensors: their types, and loops over them.
#ifndef TENSORS_HPP
#define TENSORS_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "candelabra/dtypes.hpp"
#include "candelabra/geometry.hpp"
#include "device.hpp"

using candelabra::kernel::Call;
using candelabra::kernel::compute_t;
using candelabra::kernel::dispatch;
using candelabra::kernel::failure;
using candelabra::kernel::FloatTypes;
using candelabra::kernel::Geometry;
using candelabra::kernel::geometry;
using candelabra::kernel::IntegerTypes;
using candelabra::kernel::memory_t;
using candelabra::kernel::Order;
using candelabra::kernel::RealTypes;
using candelabra::kernel::Types;

// The dtypes of these kernels: all but the complex ones.
using AllTypes = decltype(candelabra::kernel::BoolType{} + RealTypes{});
using BitTypes = decltype(candelabra::kernel::BoolType{} + IntegerTypes{});

// The mask of a list, for the entry of a kernel.
template <typename... Ts>
constexpr uint64_t mask_of(Types<Ts...>) {
  return (CB_DTYPE_BIT(candelabra::kernel::dtype_v<Ts>) | ...);
}
template <typename List>
constexpr uint64_t mask = mask_of(List{});

// A number that stands for a tensor is in host memory; everything else is in the device's.
inline char* memory_of(const cb_tensor& tensor) {
  return tensor.flags & CB_TENSOR_NUMBER ? static_cast<char*>(tensor.data)
                                         : device::address(tensor.storage, tensor.offset);
}
template <typename T>
memory_t<T>* elements(const cb_tensor& tensor) {
  return reinterpret_cast<memory_t<T>*>(memory_of(tensor));
}

// An element in the type that it is computed in: float for half precisions, bool for any byte.
template <typename T>
compute_t<T> load(const memory_t<T>* at) {
  if constexpr (std::is_same_v<T, bool>)
    return *at != 0;
  else
    return static_cast<compute_t<T>>(*at);
}

// A number of one type as another one; floats become integers toward zero.
template <typename R, typename A>
R converted(A value) {
  using C = compute_t<R>;
  if constexpr (std::is_same_v<R, bool>)
    return value != A(0);
  else if constexpr (std::is_integral_v<R> && std::is_floating_point_v<A>)
    return candelabra::kernel::truncated<R>(value);
  else
    return static_cast<R>(static_cast<C>(value));
}

// An input of a loop whose elements have type T. A number beside half precisions is float32.
template <typename T>
class Input {
 public:
  explicit Input(const cb_tensor& tensor)
      : data_(elements<T>(tensor)), is_number_((tensor.flags & CB_TENSOR_NUMBER) != 0), number_{} {
    if (!is_number_) return;
    if (tensor.dtype == candelabra::kernel::dtype_v<T>)
      number_ = load<T>(data_);
    else
      dispatch<AllTypes>(tensor.dtype,
                         [&]<typename A>() { number_ = converted<compute_t<T>>(load<A>(elements<A>(tensor))); });
  }
  compute_t<T> operator[](int64_t offset) const { return is_number_ ? number_ : load<T>(data_ + offset); }

 private:
  const memory_t<T>* data_;
  bool is_number_;
  compute_t<T> number_;
};

// Calls f with the offsets of each element, one for each operand.
template <int N, typename F>
void for_each(const Geometry<N>& g, F&& f) {
  if (g.numel == 0) return;
  std::array<int64_t, N> offsets{};
  if (g.contiguous()) {
    for (int64_t i = 0; i < g.sizes[0]; ++i) {
      offsets.fill(i);
      f(offsets);
    }
    return;
  }
  std::array<int64_t, candelabra::kernel::max_dims> index{};
  for (;;) {
    std::array<int64_t, N> inner = offsets;
    for (int64_t i = 0; i < g.sizes[0]; ++i) {
      f(inner);
      for (int k = 0; k < N; ++k) inner[k] += g.strides[k][0];
    }
    int d = 1;
    for (; d < g.ndim; ++d) {
      for (int k = 0; k < N; ++k) offsets[k] += g.strides[k][d];
      if (++index[d] < g.sizes[d]) break;
      for (int k = 0; k < N; ++k) offsets[k] -= g.strides[k][d] * g.sizes[d];
      index[d] = 0;
    }
    if (d >= g.ndim) return;
  }
}

// out = f(inputs...), element by element: the result has type R, the inputs have type T.
template <typename R, typename T, typename F, typename... Tensors>
void map(const cb_tensor& out, const F& f, const Tensors&... tensors) {
  constexpr int operands = 1 + sizeof...(Tensors);
  const auto g = geometry<operands>({&out, &tensors...});
  memory_t<R>* const results = elements<R>(out);
  const std::array<Input<T>, sizeof...(Tensors)> inputs{Input<T>(tensors)...};
  [&]<size_t... K>(std::index_sequence<K...>) {
    for_each(g, [&](const std::array<int64_t, operands>& offset) {
      results[offset[0]] = static_cast<memory_t<R>>(f(inputs[K][offset[K + 1]]...));
    });
  }(std::make_index_sequence<sizeof...(Tensors)>{});
}

// A view of a tensor with other sizes and strides, which it owns.
struct View : cb_tensor {
  explicit View(const cb_tensor& tensor)
      : cb_tensor(tensor),
        own_sizes(tensor.sizes, tensor.sizes + tensor.ndim),
        own_strides(tensor.strides, tensor.strides + tensor.ndim) {
    sizes = own_sizes.data();
    strides = own_strides.data();
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  std::vector<int64_t> own_sizes, own_strides;

  void set_size(int64_t dim, int64_t size) {
    own_sizes[static_cast<size_t>(dim)] = size;
    numel = 1;
    for (const int64_t each : own_sizes) numel *= each;
  }
};

// The slices along a dimension: a loop over `firsts` visits the first element of each.
struct Slices {
  View firsts;
  int64_t length = 1, stride = 0;
  Slices(const cb_tensor& tensor, int64_t dim) : firsts(tensor) {
    if (tensor.ndim == 0) return;
    length = tensor.sizes[dim];
    stride = tensor.strides[dim];
    firsts.set_size(dim, length == 0 ? 0 : 1);
  }
};

#endif
