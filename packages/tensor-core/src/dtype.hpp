// The element types: their table, their Python objects, and promotion between them.
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
};
constexpr int dtype_count = CB_DTYPE_COUNT;

struct DtypeInfo {
  const char* name;       // "float32"
  const char* type_name;  // "Float", as PyTorch's messages say it
  int itemsize;
  bool floating;
  bool complex;
  bool is_signed;
  const char* numpy_type;  // NumPy's typestr without byte order ("f4"); null for bfloat16
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
inline bool is_integral(Dtype dtype) {
  return !info(dtype).floating && !info(dtype).complex;
}  // bool included
inline bool is_differentiable(Dtype dtype) {
  return !is_integral(dtype);
}
// Whether elements of this dtype may begin at this address; those of complex dtypes are pairs of numbers.
inline bool is_aligned(const void* address, Dtype dtype) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(itemsize(dtype) / (is_complex(dtype) ? 2 : 1)) == 0;
}
inline const char* name(Dtype dtype) {
  return info(dtype).name;
}

// float32 for complex64, float64 for complex128, otherwise the dtype itself; and the other way round.
Dtype real_of(Dtype dtype);
Dtype complex_of(Dtype dtype);

// The dtype of floating-point results made from integers; set by candelabra.set_default_dtype.
Dtype default_dtype();
void set_default_dtype(Dtype dtype);

// ---- promotion (promotion.cpp): PyTorch's rules, and NumPy's for uint16, uint32 and uint64 with other integers, where PyTorch has
// none. There is none for uint64 with a signed dtype: that raises.

Dtype promote(Dtype a, Dtype b);
bool can_cast(Dtype from, Dtype to);  // whether an in-place or out= result of `from` may be stored as `to`

// One operand's part in the promotion of several. Numbers and zero-dimensional tensors only count where they are of a higher
// category (bool < integer < floating < complex) than everything with dimensions.
class Promotion {
 public:
  void add_tensor(Dtype dtype, bool zero_dimensional);
  void add_number(int32_t scalar_kind);  // enum cb_scalar_kind
  Dtype result() const;

 private:
  int dimensioned_ = -1, zero_dimensional_ = -1, number_ = -1;  // a Dtype or -1; the number's in defaults (int64, default dtype…)
};

// ---- Python

PyObject* dtype_object(Dtype dtype);        // borrowed
bool is_dtype_object(PyObject* object);     // candelabra.dtype instance
Dtype dtype_from_object(PyObject* object);  // dtype instance, or Python's bool, int, float, complex; throws TypeError
bool init_dtype(PyObject* module);

}  // namespace candelabra
