// Caching allocator of host memory, for results (through backend.h) and for temporaries of kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra::cpu {

constexpr size_t memory_alignment = 64;

// Returns at least `bytes` bytes, 64-byte aligned and uninitialized. Throws
// Failure(CB_OUT_OF_MEMORY) with the sizes.
void* allocate(size_t bytes);
// `bytes` is the size that was passed to allocate().
void deallocate(void* memory, size_t bytes) noexcept;
void empty_cache() noexcept;
void memory_statistics(cb_memory_statistics& result);
void reset_peak_statistics();
void set_memory_limit(int64_t bytes);  // negative: no limit
int64_t physical_memory();
int64_t available_memory();
// The number of bytes in an environment variable, or `otherwise` if it is unset. Throws
// Failure(CB_VALUE_ERROR) for any other text.
int64_t bytes_from_environment(const char* name, int64_t otherwise);
// Limit on the bytes of cached free blocks: CANDELABRA_CPU_CACHE_BYTES, or a quarter of the
// machine's memory.
int64_t cached_bytes_allowed();
// Hold the lock across fork(): the child does not have the thread that might hold it.
void allocator_before_fork();
void allocator_after_fork();

// Temporary memory of a kernel, freed at the end of the scope.
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : bytes_(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)), data_(static_cast<T*>(allocate(bytes_))) {}
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace candelabra::cpu
