// Machine code of one function, from an object file (ELF, x86-64) that LLVM wrote.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace candelabra::cpu {

// Code in memory of its own, which can be executed and not written.
class ObjectCode {
 public:
  // Throws Failure where the file is damaged, needs symbols of others, or has no such function.
  ObjectCode(std::span<const std::byte> file, std::string_view function_name);
  ~ObjectCode();
  ObjectCode(const ObjectCode&) = delete;
  ObjectCode& operator=(const ObjectCode&) = delete;

  void* function() const { return function_; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  void* function_ = nullptr;
};

}  // namespace candelabra::cpu
