// The structs of DLPack 1.0, a protocol to exchange tensors between frameworks, as its
// specification documents them (https://dmlc.github.io/dlpack).
#pragma once

#include <cstdint>

namespace candelabra::dlpack {

enum DeviceType : int32_t { device_cpu = 1, device_cuda = 2, device_cuda_host = 3, device_cuda_managed = 13 };

enum TypeCode : uint8_t {
  code_int = 0,
  code_uint = 1,
  code_float = 2,
  code_opaque = 3,
  code_bfloat = 4,
  code_complex = 5,
  code_bool = 6,
  code_float8_e4m3fn = 10,
  code_float8_e4m3fnuz = 11,
  code_float8_e5m2 = 12,
  code_float8_e5m2fnuz = 13,
  code_float8_e8m0fnu = 14,
};

struct Device {
  int32_t type;
  int32_t index;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;  // 1: a scalar type
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps (before 1.2)
  uint64_t byte_offset;
};

// In a capsule named "dltensor", renamed to "used_dltensor" when it is consumed.
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

enum Flags : uint64_t { flag_read_only = 1, flag_copied = 2 };

// In a capsule named "dltensor_versioned", renamed to "used_dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  Tensor tensor;
};

constexpr Version our_version = {1, 0};

}  // namespace candelabra::dlpack
