// In a build with AddressSanitizer, a kernel may use no memory of a program but that of the tensors
// of its call: a report names what reads or writes beyond them. In other builds nothing is done.
#pragma once

#include <cstddef>
#include <span>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace candelabra::runner {

class OperandGuard {
 public:
  // `memory` is usable again when the guard is gone.
  explicit OperandGuard(std::span<const std::span<std::byte>> memory) : memory_(memory) {
#if defined(__SANITIZE_ADDRESS__)
    for (const std::span<std::byte> part : memory_) ASAN_POISON_MEMORY_REGION(part.data(), part.size());
#endif
  }
  OperandGuard(const OperandGuard&) = delete;
  OperandGuard& operator=(const OperandGuard&) = delete;
  ~OperandGuard() {
#if defined(__SANITIZE_ADDRESS__)
    for (const std::span<std::byte> part : memory_) ASAN_UNPOISON_MEMORY_REGION(part.data(), part.size());
#endif
  }
  void allow([[maybe_unused]] const std::byte* begin, [[maybe_unused]] size_t bytes) const {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
  }

 private:
  std::span<const std::span<std::byte>> memory_;
};

}  // namespace candelabra::runner
