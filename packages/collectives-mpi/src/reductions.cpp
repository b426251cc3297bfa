#include "reductions.hpp"

#include <array>
#include <complex>
#include <string>

#include "candelabra/collectives.h"
#include "error.hpp"
#include "half.hpp"

namespace candelabra::mpi {
namespace {

struct Dtype {
  const char* name;
  MPI_Datatype type;  // in which elements are reduced
  bool is_integer, is_complex;
};

const std::array<Dtype, CB_DTYPE_COUNT> dtypes{{
    {"bool", MPI_UINT8_T, true, false},
    {"uint8", MPI_UINT8_T, true, false},
    {"int8", MPI_INT8_T, true, false},
    {"int16", MPI_INT16_T, true, false},
    {"int32", MPI_INT32_T, true, false},
    {"int64", MPI_INT64_T, true, false},
    {"float16", MPI_UINT16_T, false, false},
    {"bfloat16", MPI_UINT16_T, false, false},
    {"float32", MPI_FLOAT, false, false},
    {"float64", MPI_DOUBLE, false, false},
    {"complex64", MPI_C_FLOAT_COMPLEX, false, true},
    {"complex128", MPI_C_DOUBLE_COMPLEX, false, true},
    {"uint16", MPI_UINT16_T, true, false},
    {"uint32", MPI_UINT32_T, true, false},
    {"uint64", MPI_UINT64_T, true, false},
    {"float8_e4m3fn", MPI_UINT8_T, false, false},
    {"float8_e5m2", MPI_UINT8_T, false, false},
    {"float8_e4m3fnuz", MPI_UINT8_T, false, false},
    {"float8_e5m2fnuz", MPI_UINT8_T, false, false},
    {"float8_e8m0fnu", MPI_UINT8_T, false, false},
    {"complex32", MPI_UINT32_T, false, true},
}};

const Dtype& row_of(int32_t dtype) {
  if (dtype < 0 || dtype >= CB_DTYPE_COUNT)
    throw Failure(CB_NOT_IMPLEMENTED, "there is no dtype " + std::to_string(dtype));
  return dtypes[static_cast<size_t>(dtype)];
}

[[noreturn]] void refuse(const char* what, const Dtype& dtype, const char* reduction) {
  throw Failure(CB_NOT_IMPLEMENTED, std::string(what) + ": " + dtype.name + " has no " + reduction);
}

// Of bools: or, and.
MPI_Op bool_operation(const char* what, int32_t reduction) {
  switch (reduction) {
    case CB_REDUCE_SUM:
    case CB_REDUCE_MAX:
      return MPI_MAX;
    case CB_REDUCE_PRODUCT:
    case CB_REDUCE_MIN:
      return MPI_MIN;
    default:
      refuse(what, dtypes[CB_BOOL], "mean");
  }
}

MPI_Op bitwise_operation(const char* what, const Dtype& dtype, int32_t reduction) {
  if (!dtype.is_integer) refuse(what, dtype, "bitwise reduction");
  if (reduction == CB_REDUCE_BAND) return MPI_BAND;
  return reduction == CB_REDUCE_BOR ? MPI_BOR : MPI_BXOR;
}

MPI_Op operation_of(const char* what, int32_t dtype, int32_t reduction) {
  const Dtype& row = row_of(dtype);
  if (reduction >= CB_REDUCE_BAND && reduction <= CB_REDUCE_BXOR) return bitwise_operation(what, row, reduction);
  if (reduction < CB_REDUCE_SUM || reduction > CB_REDUCE_MEAN)
    throw Failure(CB_VALUE_ERROR, std::string(what) + ": there is no reduction " + std::to_string(reduction));
  if (dtype == CB_BOOL) return bool_operation(what, reduction);
  const int32_t combined = reduction == CB_REDUCE_MEAN ? static_cast<int32_t>(CB_REDUCE_SUM) : reduction;
  if (row.is_complex && (combined == CB_REDUCE_MIN || combined == CB_REDUCE_MAX)) refuse(what, row, "min and max");
  if (dtype >= CB_FLOAT8_E4M3FN) refuse(what, row, "reduction");
  if (dtype == CB_FLOAT16 || dtype == CB_BFLOAT16) return half_operation(dtype, combined);
  switch (combined) {
    case CB_REDUCE_PRODUCT:
      return MPI_PROD;
    case CB_REDUCE_MIN:
      return MPI_MIN;
    case CB_REDUCE_MAX:
      return MPI_MAX;
    default:
      return MPI_SUM;
  }
}

template <typename T>
void divide_as(void* data, int64_t count, int divisor) {
  T* values = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / static_cast<T>(divisor));
}

}  // namespace

const char* dtype_name(int32_t dtype) {
  return row_of(dtype).name;
}

int64_t itemsize(int32_t dtype) {
  row_of(dtype);
  return static_cast<int64_t>(cb_dtype_size(dtype));
}

Elements moved(int32_t dtype) {
  return {MPI_BYTE, itemsize(dtype)};
}

Reduced reduced(const char* what, int32_t dtype, int32_t reduction) {
  const MPI_Op operation = operation_of(what, dtype, reduction);
  const Dtype& row = row_of(dtype);
  // A sum of complex numbers is that of two real ones, which MPI computes faster.
  if (row.is_complex && operation == MPI_SUM) return {{dtype == CB_COMPLEX64 ? MPI_FLOAT : MPI_DOUBLE, 2}, operation};
  return {{row.type, 1}, operation};
}

void divide(void* data, int64_t count, int32_t dtype, int divisor) {
  switch (dtype) {
    case CB_UINT8:
      return divide_as<uint8_t>(data, count, divisor);
    case CB_INT8:
      return divide_as<int8_t>(data, count, divisor);
    case CB_INT16:
      return divide_as<int16_t>(data, count, divisor);
    case CB_INT32:
      return divide_as<int32_t>(data, count, divisor);
    case CB_INT64:
      return divide_as<int64_t>(data, count, divisor);
    case CB_UINT16:
      return divide_as<uint16_t>(data, count, divisor);
    case CB_UINT32:
      return divide_as<uint32_t>(data, count, divisor);
    case CB_UINT64:
      return divide_as<uint64_t>(data, count, divisor);
    case CB_FLOAT32:
      return divide_as<float>(data, count, divisor);
    case CB_FLOAT64:
      return divide_as<double>(data, count, divisor);
    case CB_COMPLEX64:
      return divide_as<float>(data, 2 * count, divisor);
    case CB_COMPLEX128:
      return divide_as<double>(data, 2 * count, divisor);
    default:
      divide_half(data, count, dtype, divisor);
  }
}

}  // namespace candelabra::mpi
