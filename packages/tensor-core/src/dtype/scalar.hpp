// Numbers as cb_scalar.
#pragma once

#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra {

inline cb_scalar bool_scalar(bool value) {
  return {CB_SCALAR_BOOL, 0, value, value ? 1.0 : 0.0, 0, 0};
}
inline cb_scalar int_scalar(int64_t value) {
  return {CB_SCALAR_INT, 0, value, static_cast<double>(value), 0, 0};
}
inline cb_scalar unsigned_scalar(uint64_t value) {
  const int32_t flags = value >> 63 ? CB_SCALAR_UNSIGNED : 0;
  return {CB_SCALAR_INT, flags, static_cast<int64_t>(value), static_cast<double>(value), 0, 0};
}
inline cb_scalar float_scalar(double value) {
  return {CB_SCALAR_FLOAT, 0, 0, value, 0, 0};
}
inline cb_scalar complex_scalar(double re, double im) {
  return {CB_SCALAR_COMPLEX, 0, 0, re, im, 0};
}

// Whether the number is a bool or an integer.
inline bool whole(const cb_scalar& scalar) {
  return scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
}

}  // namespace candelabra
