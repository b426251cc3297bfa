// What differs between two recordings of the same function.
#include <algorithm>

#include "record/recorder.hpp"

namespace candelabra {

std::string place_of(const Instruction& instruction) {
  const char* const name = instruction.op                                ? instruction.op->schema.name.c_str()
                           : instruction.kind == Instruction::Kind::Copy ? "copy"
                                                                         : "fill";
  return instruction.file.empty() ? text(name, "()") : text(name, "(), ", instruction.file, ":", instruction.line);
}

namespace {

bool same_geometry(const cb_tensor& a, const cb_tensor& b) {
  const auto ndim = static_cast<size_t>(a.ndim);
  return a.ndim == b.ndim && a.dtype == b.dtype && a.flags == b.flags && std::equal(a.sizes, a.sizes + ndim, b.sizes) &&
         std::equal(a.strides, a.strides + ndim, b.strides);
}

bool same_number(const cb_tensor& a, const cb_tensor& b) {
  if ((a.flags ^ b.flags) & CB_TENSOR_NUMBER) return false;
  return !(a.flags & CB_TENSOR_NUMBER) ||
         std::memcmp(a.data, b.data, static_cast<size_t>(itemsize(static_cast<Dtype>(a.dtype)))) == 0;
}

bool same_scalar(const cb_scalar& a, const cb_scalar& b) {
  return a.kind == b.kind && a.i == b.i && std::memcmp(&a.re, &b.re, sizeof a.re) == 0 &&
         std::memcmp(&a.im, &b.im, sizeof a.im) == 0;
}

// The descriptors of tensors are compared as operands.
bool same_value(const cb_value& a, const cb_value& b) {
  if (a.kind != b.kind || a.count != b.count) return false;
  const auto count = static_cast<size_t>(a.count);
  switch (a.kind) {
    case CB_TENSOR:
      return same_geometry(*a.as.tensor, *b.as.tensor) && same_number(*a.as.tensor, *b.as.tensor);
    case CB_SCALAR:
      return same_scalar(*a.as.scalar, *b.as.scalar);
    case CB_INT:
      return a.as.i == b.as.i;
    case CB_FLOAT:
      return std::memcmp(&a.as.f, &b.as.f, sizeof(double)) == 0;
    case CB_INTS:
      return std::equal(a.as.ints, a.as.ints + count, b.as.ints);
    case CB_FLOATS:
      return std::memcmp(a.as.floats, b.as.floats, count * sizeof(double)) == 0;
    case CB_STRING:
      return std::strcmp(a.as.string, b.as.string) == 0;
    default:
      return true;
  }
}

bool same_operands(const Instruction& a, const Instruction& b, const std::vector<ComparedInput>& inputs) {
  const auto shift_of = [&](int buffer) {
    const auto input = std::ranges::find(inputs, buffer, &ComparedInput::buffer);
    return input == inputs.end() ? 0 : input->offset_in_b - input->offset_in_a;
  };
  return std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    [&](const Operand& one, const Operand& other) {
                      return one.buffer == other.buffer && one.offset + shift_of(one.buffer) == other.offset &&
                             same_geometry(*one.tensor, *other.tensor);
                    });
}

std::string difference(const Instruction& a, const Instruction& b, const std::vector<ComparedInput>& inputs) {
  if (a.kind != b.kind || a.op != b.op || a.kernel.compiled != b.kernel.compiled || a.device != b.device)
    return text(place_of(a), " in one call is ", place_of(b), " in the next");
  if (a.value_count != b.value_count || a.output_count != b.output_count || a.bytes != b.bytes ||
      !std::equal(a.pattern, a.pattern + 2, b.pattern))
    return text(place_of(a), " has other arguments in the next call");
  if (static_cast<bool>(a.live) != static_cast<bool>(b.live) || a.random_blocks != b.random_blocks ||
      a.generator.get() != b.generator.get())
    return text(place_of(a), " takes other random or live numbers in the next call");
  const int compared = a.live ? a.live_first : a.value_count;
  for (int i = 0; i < compared; ++i) {
    if (!same_value(a.values[i], b.values[i]))
      return text("argument '", a.op->schema.parameters[static_cast<size_t>(i)].name, "' of ", place_of(a),
                  " has another value in the next call");
  }
  if (!same_operands(a, b, inputs)) return text(place_of(a), " gets tensors of other memory in the next call");
  return {};
}

}  // namespace

std::string difference(const Recorder& a, const Recorder& b, const std::vector<ComparedInput>& inputs) {
  const size_t common = std::min(a.instructions.size(), b.instructions.size());
  for (size_t k = 0; k < common; ++k) {
    std::string found = difference(a.instructions[k], b.instructions[k], inputs);
    if (!found.empty()) return found;
  }
  if (a.instructions.size() != b.instructions.size())
    return text(place_of((a.instructions.size() > common ? a : b).instructions[common]),
                " runs in one of two calls only");
  for (size_t k = 0; k < std::min(a.buffers.size(), b.buffers.size()); ++k) {
    const RecordedBuffer &one = a.buffers[k], &other = b.buffers[k];
    if (one.first < 0 && other.first < 0 && one.constant == other.constant) continue;
    const std::string place = one.first >= 0 ? place_of(a.instructions[static_cast<size_t>(one.first)]) : "an operator";
    if (one.first != other.first || one.is_existing != other.is_existing || one.constant != other.constant)
      return text("a tensor of ", place, " is made of other values in the next call");
    const bool is_input = std::ranges::find(inputs, static_cast<int>(k), &ComparedInput::buffer) != inputs.end();
    if (one.existing && other.existing && !is_input && one.existing != other.existing)
      return text("a tensor of ", place, " is another one in the next call");
  }
  return {};
}

}  // namespace candelabra
