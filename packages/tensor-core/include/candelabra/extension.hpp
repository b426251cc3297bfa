// Operators of one's own in C++: a kernel is an ordinary function, and call<function>() is what the
// core is given.
//
//   void smooth(Tensor out, Array<const float, 1> x, double strength);
//   extern "C" CB_EXPORT int32_t candelabra_kernel_smooth(cb_call* c) { return candelabra::extension::call<&smooth>(c); }
//
// (candelabra.utils.cpp_extension writes the second line.) Results come first, then the arguments
// in the order of the schema. Parameters may be
//
//   Tensor                        a tensor of any dtype: sizes, strides, data<T>()
//   std::optional<Tensor>         one that may be missing: Tensor? in the schema
//   std::vector<Tensor>           Tensor[] and Tensor?[] (a missing one is not defined())
//   Array<T, N>                   a tensor of this dtype with N dimensions, of any strides: a(i, j);
//                                 const T where it is only read
//   T*, std::span<T>              the elements of a tensor of this dtype in row-major order; one with
//                                 gaps is copied where T is const
//   bool, integers, double, float bool, int, float, Scalar
//   std::optional of these        int?, float?, …
//   std::complex<double>, const cb_scalar&
//                                 Scalar
//   std::span<const int64_t>, std::span<const double>
//                                 int[], float[] (spans of a Tensor argument are its elements)
//   std::string, const char*      str
//   cb_call*                      the call itself; takes the place of no argument
//
// An exception becomes a Python exception: Error says which, std::invalid_argument ValueError,
// std::out_of_range IndexError, std::bad_alloc OutOfMemoryError, all others RuntimeError.
#ifndef CANDELABRA_EXTENSION_HPP
#define CANDELABRA_EXTENSION_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <complex>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "candelabra/backend.h"

namespace candelabra::extension {

// ---- errors

class Error : public std::runtime_error {
 public:
  Error(int32_t status, const std::string& message) : std::runtime_error(message), status(status) {}
  int32_t status;  // enum cb_status
};

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}
template <typename... Parts>
[[noreturn]] void fail(cb_status status, const Parts&... parts) {
  throw Error(status, text(parts...));
}
// check(x.ndim() == 2, "expected a matrix, but got ", x.ndim(), " dimensions");
template <typename... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) fail(CB_RUNTIME_ERROR, parts...);
}

// Runs a kernel at the boundary to the core, which no exception crosses.
template <typename Body>
int32_t guarded(cb_call* call, Body&& body) noexcept {
  auto failed = [&](int32_t status, const char* message) {
    std::snprintf(call->error, call->error_capacity, "%s", message);
    return status == CB_OK ? static_cast<int32_t>(CB_RUNTIME_ERROR) : status;
  };
  try {
    return body();
  } catch (const Error& error) {
    return failed(error.status, error.what());
  } catch (const std::bad_alloc&) {
    return failed(CB_OUT_OF_MEMORY, "out of memory");
  } catch (const std::out_of_range& error) {
    return failed(CB_INDEX_ERROR, error.what());
  } catch (const std::invalid_argument& error) {
    return failed(CB_VALUE_ERROR, error.what());
  } catch (const std::exception& error) {
    return failed(CB_RUNTIME_ERROR, error.what());
  } catch (...) {
    return failed(CB_RUNTIME_ERROR, "an exception that is no std::exception was thrown");
  }
}

// ---- dtypes

// The upper half of a float32; rounded to nearest, ties to even.
class BFloat16 {
 public:
  BFloat16() = default;
  BFloat16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    bits_ = static_cast<uint16_t>(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16); }

 private:
  uint16_t bits_ = 0;
};

#ifdef __FLT16_MAX__
using Float16 = _Float16;
#define CANDELABRA_HAS_FLOAT16 1
#endif

template <typename T>
constexpr int32_t dtype_of = -1;
template <>
inline constexpr int32_t dtype_of<bool> = CB_BOOL;
template <>
inline constexpr int32_t dtype_of<uint8_t> = CB_UINT8;
template <>
inline constexpr int32_t dtype_of<int8_t> = CB_INT8;
template <>
inline constexpr int32_t dtype_of<int16_t> = CB_INT16;
template <>
inline constexpr int32_t dtype_of<int32_t> = CB_INT32;
template <>
inline constexpr int32_t dtype_of<int64_t> = CB_INT64;
template <>
inline constexpr int32_t dtype_of<uint16_t> = CB_UINT16;
template <>
inline constexpr int32_t dtype_of<uint32_t> = CB_UINT32;
template <>
inline constexpr int32_t dtype_of<uint64_t> = CB_UINT64;
template <>
inline constexpr int32_t dtype_of<BFloat16> = CB_BFLOAT16;
#ifdef CANDELABRA_HAS_FLOAT16
template <>
inline constexpr int32_t dtype_of<Float16> = CB_FLOAT16;
#endif
template <>
inline constexpr int32_t dtype_of<float> = CB_FLOAT32;
template <>
inline constexpr int32_t dtype_of<double> = CB_FLOAT64;
template <>
inline constexpr int32_t dtype_of<std::complex<float>> = CB_COMPLEX64;
template <>
inline constexpr int32_t dtype_of<std::complex<double>> = CB_COMPLEX128;

template <typename T>
concept Element = dtype_of<std::remove_const_t<T>> >= 0;

inline const char* dtype_name(int32_t dtype) {
  constexpr const char* names[] = {
      "bool",     "uint8",         "int8",        "int16",           "int32",           "int64",          "float16",
      "bfloat16", "float32",       "float64",     "complex64",       "complex128",      "uint16",         "uint32",
      "uint64",   "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32"};
  return dtype >= 0 && dtype < CB_DTYPE_COUNT ? names[dtype] : "an unknown dtype";
}
inline int64_t element_size(int32_t dtype) {
  constexpr int8_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1, 1, 1, 1, 4};
  return sizes[dtype];
}

// Calls body.template operator()<T>() for the one of these types that a tensor's elements have:
//   dispatch<float, double>(x.dtype(), [&]<typename T> { ... });
template <typename First, typename... Rest, typename Body>
auto dispatch(int32_t dtype, Body&& body) {
  if (dtype == dtype_of<First>) return body.template operator()<First>();
  if constexpr (sizeof...(Rest) > 0) {
    return dispatch<Rest...>(dtype, std::forward<Body>(body));
  } else {
    throw Error(CB_NOT_IMPLEMENTED, "");  // the core words it
  }
}

// ---- tensors

inline bool is_contiguous(const cb_tensor& tensor) {
  int64_t expected = 1;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return tensor.numel == 0;
    expected *= tensor.sizes[d];
  }
  return true;
}

// A view of memory, for the time of the call.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const cb_tensor* descriptor) : descriptor_(descriptor) {}

  bool defined() const { return descriptor_ != nullptr; }
  const cb_tensor& descriptor() const { return *descriptor_; }
  int ndim() const { return descriptor_->ndim; }
  int64_t numel() const { return descriptor_->numel; }
  int32_t dtype() const { return descriptor_->dtype; }
  std::span<const int64_t> sizes() const { return {descriptor_->sizes, static_cast<size_t>(descriptor_->ndim)}; }
  std::span<const int64_t> strides() const { return {descriptor_->strides, static_cast<size_t>(descriptor_->ndim)}; }
  // Counted from the end where negative; throws std::out_of_range.
  int64_t size(int dim) const { return descriptor_->sizes[wrapped(dim)]; }
  int64_t stride(int dim) const { return descriptor_->strides[wrapped(dim)]; }
  bool is_contiguous() const { return extension::is_contiguous(*descriptor_); }

  // The address of the first element; throws where the elements are of another dtype.
  template <Element T>
  T* data() const {
    if (dtype_of<std::remove_const_t<T>> != dtype())
      fail(CB_TYPE_ERROR, "expected a tensor of dtype ", dtype_name(dtype_of<std::remove_const_t<T>>), ", but got ",
           dtype_name(dtype()));
    return static_cast<T*>(descriptor_->data);
  }

 private:
  int wrapped(int dim) const {
    const int found = dim < 0 ? dim + ndim() : dim;
    if (found < 0 || found >= ndim())
      throw std::out_of_range(text("there is no dimension ", dim, " of a tensor with ", ndim(), " dimensions"));
    return found;
  }
  const cb_tensor* descriptor_ = nullptr;
};

// The elements of a tensor with N dimensions, of any strides.
template <Element T, int N>
class Array {
 public:
  Array(T* data, const int64_t* sizes, const int64_t* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  template <std::integral... Indices>
    requires(sizeof...(Indices) == N)
  T& operator()(Indices... indices) const {
    int64_t offset = 0;
    [[maybe_unused]] int d = 0;
    ((offset += static_cast<int64_t>(indices) * strides_[d++]), ...);
    return data_[offset];
  }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int d) const { return strides_[d]; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

// visit(offset) for each element in row-major order; offsets are in elements.
template <typename Visit>
void each_offset(const cb_tensor& tensor, Visit&& visit) {
  if (tensor.numel == 0) return;
  const int last = tensor.ndim - 1;
  const int64_t inner = last >= 0 ? tensor.sizes[last] : 1, step = last >= 0 ? tensor.strides[last] : 0;
  std::vector<int64_t> index(static_cast<size_t>(std::max(last, 0)), 0);
  for (int64_t offset = 0;;) {
    for (int64_t i = 0; i < inner; ++i) visit(offset + i * step);
    int d = last - 1;
    for (; d >= 0; --d) {
      offset += tensor.strides[d];
      if (++index[static_cast<size_t>(d)] < tensor.sizes[d]) break;
      offset -= tensor.strides[d] * tensor.sizes[d];
      index[static_cast<size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

// ---- from the values of a call to the parameters of a function

// Where a parameter's value is: results come first.
struct Place {
  cb_call* call;
  int position;
  const char* const* names;  // of the arguments; null where they are not known

  bool is_result() const { return position < call->output_count; }
  int argument() const { return position - call->output_count; }
  const cb_value& value() const {
    if (is_result())
      fail(CB_TYPE_ERROR, describe(), " is a tensor: the function's parameter must be one that takes tensors");
    if (argument() >= call->argument_count) fail(CB_TYPE_ERROR, "the function takes more than the schema gives");
    return call->arguments[argument()];
  }
  std::string describe() const {
    if (is_result()) return call->output_count == 1 ? std::string("the result") : text("result ", position);
    return names ? text("argument '", names[argument()], "'") : text("argument ", argument());
  }
  [[noreturn]] void wrong(const char* expected) const {
    fail(CB_TYPE_ERROR, describe(), ": the function takes ", expected, ", which is not what the schema says");
  }
  // Null where it is missing.
  const cb_tensor* tensor() const {
    if (is_result()) return &call->outputs[position];
    const cb_value& found = value();
    if (found.kind != CB_TENSOR && found.kind != CB_NONE) wrong("a tensor");
    return found.kind == CB_NONE ? nullptr : found.as.tensor;
  }
  const cb_tensor& present() const {
    const cb_tensor* found = tensor();
    if (!found) fail(CB_TYPE_ERROR, describe(), " is None, which the function does not take: std::optional does");
    return *found;
  }
  template <Element T>
  const cb_tensor& present_of() const {
    const cb_tensor& found = present();
    constexpr int32_t wanted = dtype_of<std::remove_const_t<T>>;
    if (found.dtype != wanted)
      fail(CB_TYPE_ERROR, "expected ", describe(), " to have dtype ", dtype_name(wanted), ", but got ",
           dtype_name(found.dtype));
    return found;
  }
};

// Holder<P> keeps what a parameter of type P needs during the call; get() gives it.
template <typename P>
struct Holder;

template <>
struct Holder<Tensor> {
  explicit Holder(const Place& place) : value(&place.present()) {}
  Tensor get() const { return value; }
  Tensor value;
};
template <>
struct Holder<std::optional<Tensor>> {
  explicit Holder(const Place& place) {
    if (const cb_tensor* found = place.tensor()) value = Tensor(found);
  }
  std::optional<Tensor> get() const { return value; }
  std::optional<Tensor> value;
};
template <>
struct Holder<std::vector<Tensor>> {
  explicit Holder(const Place& place) {
    const cb_value& found = place.value();
    if (found.kind != CB_TENSORS) place.wrong("a list of tensors");
    for (int k = 0; k < found.count; ++k) value.emplace_back(found.as.tensors[k]);
  }
  const std::vector<Tensor>& get() const { return value; }
  std::vector<Tensor> value;
};
template <Element T, int N>
struct Holder<Array<T, N>> {
  explicit Holder(const Place& place) : tensor(place.present_of<T>()) {
    if (tensor.ndim != N)
      fail(CB_RUNTIME_ERROR, "expected ", place.describe(), " to have ", N, " dimension(s), but got ", tensor.ndim);
  }
  Array<T, N> get() const { return {static_cast<T*>(tensor.data), tensor.sizes, tensor.strides}; }
  const cb_tensor& tensor;
};
// Elements in a row: the memory itself, or a copy of what has gaps where it is only read.
template <Element T>
struct Elements {
  explicit Elements(const Place& place) {
    const cb_tensor& found = place.present_of<T>();
    count = static_cast<size_t>(found.numel);
    if (is_contiguous(found)) {
      data = static_cast<T*>(found.data);
      return;
    }
    if constexpr (std::is_const_v<T>) {
      using Plain = std::remove_const_t<T>;
      copy = std::make_unique<Plain[]>(count);
      const auto* from = static_cast<const Plain*>(found.data);
      Plain* to = copy.get();
      each_offset(found, [&](int64_t offset) { *to++ = from[offset]; });
      data = copy.get();
    } else {
      fail(CB_RUNTIME_ERROR, place.describe(),
           " is not contiguous, and the function writes to it as if it were; pass a contiguous() tensor");
    }
  }
  T* data = nullptr;
  size_t count = 0;
  std::unique_ptr<std::remove_const_t<T>[]> copy;
};
template <Element T>
struct Holder<T*> : Elements<T> {
  using Elements<T>::Elements;
  T* get() const { return this->data; }
};
template <Element T>
struct Holder<std::span<T>> {
  explicit Holder(const Place& place) {
    if constexpr (std::is_same_v<T, const int64_t> || std::is_same_v<T, const double>) {
      if (!place.is_result() && place.value().kind == (std::is_same_v<T, const int64_t> ? CB_INTS : CB_FLOATS)) {
        const cb_value& found = place.value();
        if constexpr (std::is_same_v<T, const int64_t>) {
          list = {found.as.ints, static_cast<size_t>(found.count)};
        } else {
          list = {found.as.floats, static_cast<size_t>(found.count)};
        }
        return;
      }
    }
    elements.emplace(place);
    list = {elements->data, elements->count};
  }
  std::span<T> get() const { return list; }
  std::optional<Elements<T>> elements;
  std::span<T> list;
};
// Numbers, also out of a Scalar.
template <typename T>
concept Number = std::is_arithmetic_v<T>;
template <Number T>
struct Holder<T> {
  explicit Holder(const Place& place) {
    const cb_value& found = place.value();
    if (found.kind == CB_INT) {
      value = static_cast<T>(found.as.i);
      // float index: an integer here
      if (!std::is_same_v<T, bool> && std::is_integral_v<T> && static_cast<int64_t>(value) != found.as.i)
        fail(CB_VALUE_ERROR, place.describe(), " is ", found.as.i, ", more than the function's parameter holds");
    } else if (found.kind == CB_FLOAT && std::is_floating_point_v<T>) {
      value = static_cast<T>(found.as.f);
    } else if (found.kind == CB_SCALAR) {
      const cb_scalar& scalar = *found.as.scalar;
      const bool whole = scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
      if (scalar.kind == CB_SCALAR_COMPLEX) fail(CB_RUNTIME_ERROR, place.describe(), " must be a real number");
      if (!whole && std::is_integral_v<T>) fail(CB_RUNTIME_ERROR, place.describe(), " must be a whole number");
      value = std::is_integral_v<T> ? static_cast<T>(scalar.i) : static_cast<T>(scalar.re);
    } else {
      place.wrong("a number");
    }
  }
  T get() const { return value; }
  T value{};
};
template <Number T>
struct Holder<std::optional<T>> {
  explicit Holder(const Place& place) {
    if (place.value().kind != CB_NONE) value = Holder<T>(place).get();
  }
  std::optional<T> get() const { return value; }
  std::optional<T> value;
};
template <>
struct Holder<cb_scalar> {
  explicit Holder(const Place& place) {
    if (place.value().kind != CB_SCALAR) place.wrong("a Scalar");
    value = *place.value().as.scalar;
  }
  const cb_scalar& get() const { return value; }
  cb_scalar value;
};
template <>
struct Holder<std::complex<double>> {
  explicit Holder(const Place& place) : scalar(place) {}
  std::complex<double> get() const { return {scalar.value.re, scalar.value.im}; }
  Holder<cb_scalar> scalar;
};
template <>
struct Holder<const char*> {
  explicit Holder(const Place& place) {
    if (place.value().kind != CB_STRING) place.wrong("a str");
    value = place.value().as.string;
  }
  const char* get() const { return value; }
  const char* value;
};
template <>
struct Holder<std::string> : Holder<const char*> {
  using Holder<const char*>::Holder;
};
template <>
struct Holder<cb_call*> {
  explicit Holder(const Place& place) : call(place.call) {}
  cb_call* get() const { return call; }
  cb_call* call;
};

template <typename P>
using HolderOf = Holder<std::remove_cvref_t<P>>;
template <typename P>
constexpr bool takes_place = !std::is_same_v<std::remove_cvref_t<P>, cb_call*>;

template <typename R, typename... Parameters>
int32_t invoke(cb_call* call, const char* const* names, R (*function)(Parameters...)) {
  constexpr int expected = (0 + ... + (takes_place<Parameters> ? 1 : 0));
  if (expected != call->output_count + call->argument_count)
    fail(CB_TYPE_ERROR, "the function takes ", expected, " parameters, but the schema gives ", call->output_count,
         " result(s) and ", call->argument_count, " argument(s)");
  int position = 0;
  auto place = [&](bool takes) {
    const Place found{call, position, names};
    position += takes;
    return found;
  };
  // Braces: from left to right.
  std::tuple<std::unique_ptr<HolderOf<Parameters>>...> holders{
      std::make_unique<HolderOf<Parameters>>(place(takes_place<Parameters>))...};
  return std::apply(
      [&](auto&... holder) -> int32_t {
        if constexpr (std::is_void_v<R>) {
          function(holder->get()...);
          return CB_OK;
        } else {
          static_assert(std::is_integral_v<R> || std::is_enum_v<R>, "a kernel returns nothing, or an enum cb_status");
          return static_cast<int32_t>(function(holder->get()...));
        }
      },
      holders);
}

// What the core calls: a function of the interface of backend.h that calls an ordinary one.
template <auto function>
int32_t call(cb_call* c, const char* const* names = nullptr) noexcept {
  if constexpr (std::is_invocable_r_v<int32_t, decltype(function), cb_call*>) {
    return guarded(c, [&] { return static_cast<int32_t>(function(c)); });
  } else {
    return guarded(c, [&] { return invoke(c, names, function); });
  }
}

// The dtype of the first tensor among the arguments.
inline int32_t leading_dtype(const cb_call* call) {
  for (int i = 0; i < call->argument_count; ++i) {
    if (call->arguments[i].kind == CB_TENSOR) return call->arguments[i].as.tensor->dtype;
  }
  return call->output_count > 0 ? call->outputs[0].dtype : -1;
}

// ---- memory and threads

// For a result whose sizes depend on values: its memory, contiguous.
inline Tensor allocate(cb_call* call, int index, std::initializer_list<int64_t> sizes) {
  const int32_t status = call->host->allocate_output(call, index, static_cast<int32_t>(sizes.size()), sizes.begin());
  if (status != CB_OK) throw Error(status, "");
  return Tensor(&call->outputs[index]);
}

inline int thread_count(const cb_call* call) {
  return call->backend && call->backend->thread_count ? std::max(1, call->backend->thread_count()) : 1;
}

// body(begin, end) on parts of [0, count), on several threads where there are more than `grain` in
// a part. The first exception is thrown again.
template <typename Body>
void parallel(const cb_call* call, int64_t count, int64_t grain, Body&& body) {
  const int64_t parts = std::min<int64_t>(thread_count(call), grain > 0 ? (count + grain - 1) / grain : count);
  if (parts <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  std::vector<std::exception_ptr> errors(static_cast<size_t>(parts));
  auto part = [&](int64_t number) {
    try {
      body(count * number / parts, count * (number + 1) / parts);
    } catch (...) {
      errors[static_cast<size_t>(number)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(parts));
    for (int64_t number = 1; number < parts; ++number) threads.emplace_back(part, number);
    part(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace candelabra::extension

#endif
