// The code of a group's loop (loop_text.hpp), which other processes of the same processor can load.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/object_code.hpp"

namespace candelabra::cpu {

using LoopFunction = void (*)(void* const* addresses, int64_t n);

class LoopCode {
 public:
  // `file`: what LLVM has made of the text.
  LoopCode(std::string text, std::vector<std::byte> file);
  // Throws Failure where it was saved by another processor or of another text, or is damaged.
  static std::shared_ptr<const LoopCode> load(std::span<const std::byte> saved, std::string text);

  const std::string& text() const { return text_; }
  LoopFunction function() const { return reinterpret_cast<LoopFunction>(code_.function()); }
  std::vector<std::byte> saved() const;

 private:
  std::string text_;
  std::vector<std::byte> file_;
  ObjectCode code_;
};

}  // namespace candelabra::cpu
