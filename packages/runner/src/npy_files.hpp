// NumPy's .npy files: one array in C order and the processor's byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "candelabra_run.h"

namespace candelabra::runner {

struct Array {
  int32_t dtype = CR_FLOAT32;
  std::vector<int64_t> sizes;
  // Aligned to 64 bytes.
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data;
  uint64_t bytes = 0;
};

// These throw Failure.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const cr_tensor& tensor);

}  // namespace candelabra::runner
