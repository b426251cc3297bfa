// Numbers as elements of a tensor.
#include <cmath>
#include <cstring>
#include <limits>

#include "candelabra/half.hpp"
#include "candelabra/small_floats.hpp"
#include "dispatch/call.hpp"
#include "dtype/scalar.hpp"

namespace candelabra {

namespace {

// Rounds towards zero. What does not fit becomes the smallest int64, as the processor's own
// conversion does, instead of undefined.
int64_t truncate(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);  // float index: in range by the line above
}

// The same for uint64, whose upper half int64 lacks.
uint64_t truncate_unsigned(double value) {
  // float index: in range by the condition
  return value >= 0x1p63 && value < 0x1p64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(truncate(value));
}

float whole_as_float(const cb_scalar& scalar) {
  return scalar.flags & CB_SCALAR_UNSIGNED ? static_cast<float>(static_cast<uint64_t>(scalar.i))
                                           : static_cast<float>(scalar.i);
}

template <typename T>
void store(T value, void* element) {
  std::memcpy(element, &value, sizeof(T));
}

template <typename T>
T load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

}  // namespace

void store_scalar(const cb_scalar& scalar, Dtype dtype, void* element) {
  check(!(scalar.flags & CB_SCALAR_UNSIGNED) || !is_integral(dtype) || dtype == Dtype::Bool || dtype == Dtype::UInt64,
        PyExc_RuntimeError, "value cannot be converted to type ", name(dtype),
        " without overflow: ", static_cast<uint64_t>(scalar.i));
  const int64_t integer = whole(scalar) || is_floating(dtype) || is_complex(dtype) ? scalar.i : truncate(scalar.re);
  switch (dtype) {
    case Dtype::Bool:
      return store<uint8_t>(whole(scalar) ? scalar.i != 0 : scalar.re != 0 || scalar.im != 0, element);
    case Dtype::UInt8:
      return store(static_cast<uint8_t>(integer), element);
    case Dtype::Int8:
      return store(static_cast<int8_t>(integer), element);
    case Dtype::Int16:
      return store(static_cast<int16_t>(integer), element);
    case Dtype::Int32:
      return store(static_cast<int32_t>(integer), element);
    case Dtype::Int64:
      return store(integer, element);
    case Dtype::UInt16:
      return store(static_cast<uint16_t>(integer), element);
    case Dtype::UInt32:
      return store(static_cast<uint32_t>(integer), element);
    case Dtype::UInt64:
      return store(whole(scalar) ? static_cast<uint64_t>(scalar.i) : truncate_unsigned(scalar.re), element);
    case Dtype::Float16:
      return store(half_bits::float16_from_double(scalar.re), element);
    case Dtype::BFloat16:
      return store(half_bits::bfloat16_from_double(scalar.re), element);
    // From the integer where there is one, so that it is rounded once.
    case Dtype::Float32:
      return store(whole(scalar) ? whole_as_float(scalar) : static_cast<float>(scalar.re), element);
    case Dtype::Float64:
      return store(scalar.re, element);
    case Dtype::Float8E4M3Fn:
    case Dtype::Float8E5M2:
    case Dtype::Float8E4M3Fnuz:
    case Dtype::Float8E5M2Fnuz:
    case Dtype::Float8E8M0Fnu:
      return small_floats::dispatch_float8(static_cast<int32_t>(dtype), [&]<int32_t Format>() {
        store(small_floats::float8_from_float<Format>(static_cast<float>(scalar.re)), element);
      });
    case Dtype::Complex32: {
      const uint16_t parts[2] = {half_bits::float16_from_double(scalar.re), half_bits::float16_from_double(scalar.im)};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
    case Dtype::Complex64: {
      const float parts[2] = {whole(scalar) ? whole_as_float(scalar) : static_cast<float>(scalar.re),
                              static_cast<float>(scalar.im)};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
    case Dtype::Complex128: {
      const double parts[2] = {scalar.re, scalar.im};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
  }
}

cb_scalar load_scalar(Dtype dtype, const void* element) {
  switch (dtype) {
    case Dtype::Bool:
      return bool_scalar(load<uint8_t>(element) != 0);
    case Dtype::UInt8:
      return int_scalar(load<uint8_t>(element));
    case Dtype::Int8:
      return int_scalar(load<int8_t>(element));
    case Dtype::Int16:
      return int_scalar(load<int16_t>(element));
    case Dtype::Int32:
      return int_scalar(load<int32_t>(element));
    case Dtype::Int64:
      return int_scalar(load<int64_t>(element));
    case Dtype::UInt16:
      return int_scalar(load<uint16_t>(element));
    case Dtype::UInt32:
      return int_scalar(load<uint32_t>(element));
    case Dtype::UInt64:
      return unsigned_scalar(load<uint64_t>(element));
    case Dtype::Float16:
      return float_scalar(half_bits::float16_to_float(load<uint16_t>(element)));
    case Dtype::BFloat16:
      return float_scalar(half_bits::bfloat16_to_float(load<uint16_t>(element)));
    case Dtype::Float32:
      return float_scalar(load<float>(element));
    case Dtype::Float64:
      return float_scalar(load<double>(element));
    case Dtype::Float8E4M3Fn:
    case Dtype::Float8E5M2:
    case Dtype::Float8E4M3Fnuz:
    case Dtype::Float8E5M2Fnuz:
    case Dtype::Float8E8M0Fnu:
      return small_floats::dispatch_float8(static_cast<int32_t>(dtype), [&]<int32_t Format>() {
        return float_scalar(small_floats::float8_to_float<Format>(load<uint8_t>(element)));
      });
    case Dtype::Complex32:
      return complex_scalar(
          half_bits::float16_to_float(load<uint16_t>(element)),
          half_bits::float16_to_float(load<uint16_t>(static_cast<const char*>(element) + sizeof(uint16_t))));
    case Dtype::Complex64:
      return complex_scalar(load<float>(element), load<float>(static_cast<const char*>(element) + sizeof(float)));
    case Dtype::Complex128:
      return complex_scalar(load<double>(element), load<double>(static_cast<const char*>(element) + sizeof(double)));
  }
  raise(PyExc_RuntimeError, "unknown dtype");
}

}  // namespace candelabra
