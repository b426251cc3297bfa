#include "dtype/dtype.hpp"

#include "python/errors.hpp"

namespace candelabra {

const DtypeInfo dtype_infos[dtype_count] = {
    {"bool", "Bool", 1, false, false, false, "b1"},
    {"uint8", "Byte", 1, false, false, false, "u1"},
    {"int8", "Char", 1, false, false, true, "i1"},
    {"int16", "Short", 2, false, false, true, "i2"},
    {"int32", "Int", 4, false, false, true, "i4"},
    {"int64", "Long", 8, false, false, true, "i8"},
    {"float16", "Half", 2, true, false, true, "f2"},
    {"bfloat16", "BFloat16", 2, true, false, true, nullptr},
    {"float32", "Float", 4, true, false, true, "f4"},
    {"float64", "Double", 8, true, false, true, "f8"},
    {"complex64", "ComplexFloat", 8, false, true, true, "c8"},
    {"complex128", "ComplexDouble", 16, false, true, true, "c16"},
    {"uint16", "UInt16", 2, false, false, false, "u2"},
    {"uint32", "UInt32", 4, false, false, false, "u4"},
    {"uint64", "UInt64", 8, false, false, false, "u8"},
    {"float8_e4m3fn", "Float8_e4m3fn", 1, true, false, true, nullptr},
    {"float8_e5m2", "Float8_e5m2", 1, true, false, true, nullptr},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, true, false, true, nullptr},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, true, false, true, nullptr},
    {"float8_e8m0fnu", "Float8_e8m0fnu", 1, true, false, false, nullptr},
    {"complex32", "ComplexHalf", 4, false, true, true, nullptr},
};

namespace {

Dtype default_value = Dtype::Float32;

}  // namespace

Dtype default_dtype() {
  return default_value;
}

void set_default_dtype(Dtype dtype) {
  check(is_floating(dtype), PyExc_TypeError,
        "set_default_dtype(): only floating-point dtypes are supported as the default, not ", name(dtype));
  default_value = dtype;
}

}  // namespace candelabra
