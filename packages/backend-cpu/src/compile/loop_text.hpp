// Text of LLVM's intermediate representation for a graph of elementwise operators: one loop over
// vectors, without contraction or reordering, so that its results have the bits of the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "candelabra/compile.h"

namespace candelabra::cpu {

// Elements per iteration of the loop. The caller pads what is left.
int64_t elements_per_iteration(const cb_graph& graph);

// A function `void NAME(ptr addresses, i64 n)`. The addresses are those of the inputs, the numbers
// in the order of the tensors, and the outputs. n is a multiple of elements_per_iteration().
// Results that `is_streamed` tells of are aligned to 64 bytes and written with streaming stores.
std::string loop_text(const cb_graph& graph, const std::vector<bool>& is_streamed);
inline constexpr const char* loop_name = "candelabra_loop";

// Writes the instructions that compute one node for one vector.
class VectorText {
 public:
  // `name`: what the results of this vector begin with.
  VectorText(std::string& text, std::string name, bool is_exact)
      : text_(text), name_(std::move(name)), is_exact_(is_exact) {}

  // The dtype that the following functions compute in.
  void set_dtype(int32_t dtype) { dtype_ = dtype; }
  int32_t dtype() const { return dtype_; }
  bool is_float() const { return dtype_ == CB_FLOAT32 || dtype_ == CB_FLOAT64; }
  bool is_bool() const { return dtype_ == CB_BOOL; }
  bool is_exact() const { return is_exact_; }

  // All return the name of the result.
  std::string line(const std::string& expression);
  std::string number(double value) const;  // of floats
  std::string integer(int64_t value) const;
  // "add" of floats is fadd, of signed integers "div" is sdiv.
  std::string binary(const char* operation, const std::string& a, const std::string& b);
  std::string negative(const std::string& a);
  // `condition`: "eq", "ne", "lt", "le", "gt", "ge". A comparison with NaN is false, of "ne" true.
  std::string compare(const char* condition, const std::string& a, const std::string& b);
  std::string is_nan(const std::string& a);
  std::string either(const std::string& a, const std::string& b);  // of truths
  std::string select(const std::string& condition, const std::string& a, const std::string& b);
  std::string fma(const std::string& a, const std::string& b, const std::string& c);
  // Conversions of halves in memory, which are <16 x i16>.
  std::string widened(int32_t half, const std::string& a);
  std::string narrowed(int32_t half, const std::string& a);
  // An intrinsic of one operand: "sqrt", "fabs", "floor", "ceil", "trunc", "roundeven".
  std::string intrinsic(const char* function, const std::string& a);

 private:
  std::string& text_;
  std::string name_;
  bool is_exact_;
  int32_t dtype_ = CB_FLOAT32;
  int count_ = 0;
};

inline constexpr int lanes = 16;
// Halves are float32 in registers, and are rounded where they are stored.
inline bool is_half(int32_t dtype) {
  return dtype == CB_FLOAT16 || dtype == CB_BFLOAT16;
}
// The type of a vector in registers, such as "<16 x float>"; of bools "<16 x i1>".
std::string vector_type(int32_t dtype);
// The type of an element in memory, or empty for a dtype that is not compiled.
std::string_view memory_type(int32_t dtype);

}  // namespace candelabra::cpu
