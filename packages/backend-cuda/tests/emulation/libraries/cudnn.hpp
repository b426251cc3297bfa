// Declarations that the parts of the emulated cuDNN share: the handle, and access to elements of
// any type.
#pragma once

#include <cudnn.h>

#include <cstdint>

#include "halves.hpp"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace emulation {

inline double load(cudnnDataType_t type, const void* data, int64_t at) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return static_cast<const Half*>(data)[at];
    case CUDNN_DATA_BFLOAT16:
      return static_cast<const BFloat16*>(data)[at];
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(data)[at];
    default:
      return static_cast<const double*>(data)[at];
  }
}
inline void store(cudnnDataType_t type, void* data, int64_t at, double value) {
  switch (type) {
    case CUDNN_DATA_HALF:
      static_cast<Half*>(data)[at] = Half(static_cast<float>(value));
      break;
    case CUDNN_DATA_BFLOAT16:
      static_cast<BFloat16*>(data)[at] = BFloat16(static_cast<float>(value));
      break;
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(data)[at] = static_cast<float>(value);
      break;
    default:
      static_cast<double*>(data)[at] = value;
  }
}

}  // namespace emulation
