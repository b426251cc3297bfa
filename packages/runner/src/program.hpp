// The programs of a file: calls of kernels over numbered buffers, checked before any of them runs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "archive.hpp"
#include "backend.hpp"
#include "json.hpp"

namespace candelabra::runner {

// Bytes in the archive that the programs of a file share.
struct Stored {
  std::span<std::byte> bytes;
  bool is_changed = false;  // by a call of one of the programs
  uint64_t version = 0;     // of its contents, for kernels that keep what they make of weights
};

struct Kernel {
  std::string name;
  const cb_kernel_entry* entry;
};

// What an argument or a result is.
struct Described {
  std::string name;
  int32_t dtype = 0;
  std::vector<int64_t> sizes;
  uint64_t bytes = 0;
  int buffer = -1;  // -1: no call uses it, or it has no elements
  uint64_t offset = 0;
  bool is_result = false;  // of an input: results lie in its memory
};

struct Buffer {
  enum class Kind : uint8_t { Arena, Input, Stored, Changed };
  Kind kind = Kind::Arena;
  uint64_t bytes = 0;
  uint64_t place = 0;         // in the arena, among the arguments, or among what is stored
  int first = -1, last = -1;  // the calls that use it
  bool is_written = false;
  // In the arena: the call that uses it first does not write all of it. It is zeros until then.
  bool begins_with_zeros = false;
  // Something else than bools is written to it.
  bool has_others = false;
  bool may_be_written() const { return kind == Kind::Arena || kind == Kind::Changed; }
};

// A descriptor whose address depends on where a buffer lies.
struct Operand {
  cb_tensor* tensor;
  int buffer;
  uint64_t offset, bytes;
  bool is_read = false;
  // Kernels rely on bools that are 0 or 1, and this memory may hold others when they are read.
  bool needs_bool_check = false;
};

struct Range {
  int buffer = 0;
  uint64_t offset = 0;
};

struct Call {
  enum class Kind : uint8_t { Kernel, Copy, Fill };
  Kind kind = Kind::Kernel;
  int kernel = 0;
  std::vector<cb_tensor> outputs;
  std::vector<cb_value> arguments;
  std::vector<int> argument_buffers;  // of each argument that is a tensor; else -1
  std::vector<Operand> operands;
  std::vector<int> zeroed;  // buffers that are filled with zeros before
  // Of Copy and Fill.
  Range to, from;
  uint64_t bytes = 0;
  uint8_t pattern[16] = {};
};

struct Program {
  std::vector<Described> inputs, outputs;
  std::vector<Buffer> buffers;
  // A deque, because descriptors have addresses.
  std::deque<Call> calls;
  uint64_t arena_bytes = 0;
};

// What a file holds for the runner.
struct Programs {
  std::vector<Kernel> kernels;
  std::vector<Stored> stored;
  std::deque<Program> programs;
  // Descriptors, numbers and texts that calls point to.
  std::pmr::monotonic_buffer_resource pool;
};

// The device type that a file's programs run on.
std::string device_of(const Json& content);
// Reads and checks the programs. `content` is what the file was saved with. Throws Failure.
void read_programs(const Json& description, const Archive& archive, const Backend& backend, Programs& result);

std::string dtype_name(int32_t dtype);
// Such as float32[8, 32].
std::string shape_text(int32_t dtype, std::span<const int64_t> sizes);

}  // namespace candelabra::runner
