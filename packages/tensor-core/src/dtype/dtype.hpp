// Element types: their properties, their Python objects, and type promotion.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

#include "candelabra/backend.h"

namespace candelabra {

enum class Dtype : uint8_t {
  Bool = CB_BOOL,
  UInt8 = CB_UINT8,
  Int8 = CB_INT8,
  Int16 = CB_INT16,
  Int32 = CB_INT32,
  Int64 = CB_INT64,
  Float16 = CB_FLOAT16,
  BFloat16 = CB_BFLOAT16,
  Float32 = CB_FLOAT32,
  Float64 = CB_FLOAT64,
  Complex64 = CB_COMPLEX64,
  Complex128 = CB_COMPLEX128,
  UInt16 = CB_UINT16,
  UInt32 = CB_UINT32,
  UInt64 = CB_UINT64,
  Float8E4M3Fn = CB_FLOAT8_E4M3FN,
  Float8E5M2 = CB_FLOAT8_E5M2,
  Float8E4M3Fnuz = CB_FLOAT8_E4M3FNUZ,
  Float8E5M2Fnuz = CB_FLOAT8_E5M2FNUZ,
  Float8E8M0Fnu = CB_FLOAT8_E8M0FNU,
  Complex32 = CB_COMPLEX32,
};
constexpr int dtype_count = CB_DTYPE_COUNT;

struct DtypeInfo {
  const char* name;       // "float32"
  const char* type_name;  // "Float", as in PyTorch's messages
  int itemsize;
  bool floating;
  bool complex;
  bool is_signed;
  const char* numpy_type;  // NumPy's typestr without byte order ("f4"); null where it has none
};

extern const DtypeInfo dtype_infos[dtype_count];

inline const DtypeInfo& info(Dtype dtype) {
  return dtype_infos[static_cast<int>(dtype)];
}
inline int itemsize(Dtype dtype) {
  return info(dtype).itemsize;
}
inline bool is_floating(Dtype dtype) {
  return info(dtype).floating;
}
inline bool is_complex(Dtype dtype) {
  return info(dtype).complex;
}
constexpr bool is_float8(Dtype dtype) {
  return dtype >= Dtype::Float8E4M3Fn && dtype <= Dtype::Float8E8M0Fnu;
}
inline bool is_integral(Dtype dtype) {
  return !info(dtype).floating && !info(dtype).complex;
}  // bool included
inline bool is_differentiable(Dtype dtype) {
  return !is_integral(dtype);
}
// Whether an element of this dtype may be at this address. Complex elements need only the alignment
// of their components.
inline bool is_aligned(const void* address, Dtype dtype) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(itemsize(dtype) / (is_complex(dtype) ? 2 : 1)) ==
         0;
}
inline const char* name(Dtype dtype) {
  return info(dtype).name;
}

// float16 for complex32, float32 for complex64, float64 for complex128, otherwise the dtype itself;
// and the reverse.
Dtype real_of(Dtype dtype);
Dtype complex_of(Dtype dtype);

// The dtype of floating-point results made from integers; set by candelabra.set_default_dtype.
Dtype default_dtype();
void set_default_dtype(Dtype dtype);

// ---- type promotion (promotion.cpp) Follows PyTorch's rules. For uint16, uint32 and uint64 with
// other integers, where PyTorch has none, it follows NumPy's. uint64 with a signed integer raises.

Dtype promote(Dtype a, Dtype b);
// whether a result of dtype `from` can be stored in place, or as out=, in `to`
bool can_cast(Dtype from, Dtype to);

// Accumulates the result dtype of several operands. Numbers and 0-dim tensors count only if their
// category (bool < integer < floating < complex) is higher than that of all operands with
// dimensions.
class Promotion {
 public:
  void add_tensor(Dtype dtype, bool zero_dimensional);
  void add_number(int32_t scalar_kind);  // enum cb_scalar_kind
  Dtype result() const;

 private:
  // a Dtype or -1; for numbers a default dtype (int64, default_dtype(), …)
  int dimensioned_ = -1, zero_dimensional_ = -1, number_ = -1;
};

// ---- Python

PyObject* dtype_object(Dtype dtype);     // borrowed
bool is_dtype_object(PyObject* object);  // candelabra.dtype instance
// accepts a dtype, or Python's bool, int, float, complex; throws TypeError
Dtype dtype_from_object(PyObject* object);
bool init_dtype(PyObject* module);

}  // namespace candelabra
