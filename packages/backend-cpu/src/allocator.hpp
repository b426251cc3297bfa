// The caching allocator of host memory: for results (through backend.h) and for what kernels need in between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra::cpu {

constexpr size_t memory_alignment = 64;

// At least `bytes` bytes, 64-byte aligned, not cleared; throws Failure(CB_OUT_OF_MEMORY) that says the sizes.
void* allocate(size_t bytes);
// `bytes` as it was asked for.
void deallocate(void* memory, size_t bytes) noexcept;
void empty_cache() noexcept;
void memory_statistics(cb_memory_statistics& result);
void reset_peak_statistics();
void set_memory_limit(int64_t bytes);  // negative: none
int64_t physical_memory();
int64_t available_memory();
// The number of bytes that an environment variable says, `otherwise` where it is not set; throws Failure(CB_VALUE_ERROR) for
// anything else.
int64_t bytes_from_environment(const char* name, int64_t otherwise);
// How many bytes of free blocks may be kept: CANDELABRA_CPU_CACHE_BYTES, or a quarter of the machine's memory.
int64_t cached_bytes_allowed();
// Locks may be held by threads that a forked child does not have.
void allocator_before_fork();
void allocator_after_fork();

// Memory for the time of a kernel.
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
