// The recorder: sees every kernel call, copy and fill of one thread, after decomposition, and notes
// them over numbered buffers. Program replays what it noted.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/call.hpp"
#include "operators/operator.hpp"
#include "record/refuse.hpp"

namespace candelabra {

// Memory that lives as long as a recording and the programs made from it.
class Pool {
 public:
  template <typename T>
  T* make(size_t count) {
    blocks_.push_back(std::make_unique<std::byte[]>(std::max<size_t>(count * sizeof(T), 1)));
    return reinterpret_cast<T*>(blocks_.back().get());
  }
  template <typename T>
  T* copy(const T* values, size_t count) {
    T* memory = make<T>(count);
    if (count > 0) std::memcpy(memory, values, count * sizeof(T));
    return memory;
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

struct ReleaseStorage {
  void operator()(Storage* storage) const { release(storage); }
};
using StorageRef = std::unique_ptr<Storage, ReleaseStorage>;
inline StorageRef shared(Storage* storage) {
  return StorageRef(retain(storage));
}

// The memory of one storage, by its root.
struct RecordedBuffer {
  bool is_existing = false;   // memory from before the recording
  StorageRef existing;        // this memory; a program gives up that of its arguments
  Storage* made = nullptr;    // memory made in the recording; valid until it is freed
  size_t bytes = 0;           // the size when it was first seen
  uint32_t version = 0;       // of existing memory, when it was first seen
  bool is_freed = false;      // memory made in the recording and freed in it
  bool is_written = false;    // by an instruction
  bool is_scratch = false;    // a result that the caller did not need: no tensor had it
  bool has_constant = false;  // written by the host when it was made, such as tensor([1, 2])
  std::vector<std::byte> constant;
  int first = -1, last = -1;  // the instructions that use it
  // The bytes that instructions use.
  int64_t low = INT64_MAX, high = 0;
};

// A descriptor whose address depends on where a buffer lies.
struct Operand {
  cb_tensor* tensor;
  int buffer;
  int64_t offset;  // of element 0, in bytes from the beginning of the buffer
};

struct Instruction {
  enum class Kind : uint8_t { Kernel, Copy, Fill };
  Kind kind = Kind::Kernel;
  const Operator* op = nullptr;  // null for Copy and Fill
  Kernel kernel;
  Device device;
  std::vector<Operand> operands;
  cb_tensor* outputs = nullptr;
  int output_count = 0;
  cb_value* values = nullptr;
  int value_count = 0;
  std::vector<int> value_buffers;  // of each value that is a tensor; else -1
  std::vector<int> written;        // buffers
  bool is_unlocked = false;
  bool is_random = false;
  uint64_t random_blocks = 0;
  Ref<> generator;  // null: the default one
  // Returns the values from `live_first` on, before each replay of this instruction.
  Ref<> live;
  int live_first = 0;
  // Of Copy: operands 0 and 1 are destination and source. Of Fill: operand 0, and the pattern.
  size_t bytes = 0;
  uint64_t pattern[2] = {};
  std::string file;  // of the program's line that ran it
  int line = 0;
};

class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Records this thread until stop().
  void start();
  void stop();

  // Ends the recording: what follows cannot be replayed. The first reason stands.
  void refuse(const std::string& reason);
  bool is_refused() const { return !reason_.empty(); }

  // Before the kernel runs, which may change what it reads.
  void note_kernel(Call& call, const Kernel& kernel, const cb_call& seen, bool is_unlocked);
  // The kernel that was noted last has failed.
  void forget_kernel();
  void note_copy(const TensorObject& destination, const TensorObject& source, size_t bytes);
  void note_fill(const TensorObject& destination, const uint64_t (&pattern)[2], size_t bytes);
  void note_new(Storage& storage);
  void note_freed(const Storage& storage);
  void note_host_write(Storage& storage);
  // The last kernel's values from the first scalar after its tensor lists come from this callable.
  void note_live(PyObject* callable);

  // The buffer of a storage; -1 if it has none yet.
  int find(Storage* storage) const;
  // The same, with a new buffer for memory from before the recording.
  int buffer_of(Storage* storage);
  // The same as find(), only for memory from before the recording.
  int find_existing(Storage* root) const;
  // Whether the host has written a buffer, which the recording knows or a program has added.
  bool is_constant(int buffer) const {
    return static_cast<size_t>(buffer) < buffers.size() && buffers[static_cast<size_t>(buffer)].has_constant;
  }
  // Notes that the bytes of a view are used, though no instruction does.
  void note_extent(int buffer, const TensorObject& view);
  // Gives up memory from before the recording that each call has anew.
  void forget_existing(int buffer);

  // The edges at which backward passes began that have freed the graph.
  std::vector<Ref<>> freed_edges;

  std::vector<Instruction> instructions;
  std::vector<RecordedBuffer> buffers;
  Pool pool;
  const std::string& reason() const { return reason_; }
  const std::string& reason_file() const { return reason_file_; }
  int reason_line() const { return reason_line_; }

 private:
  friend Recorder* thread_recorder();
  int new_buffer(size_t bytes);
  void use(Instruction& instruction, int buffer, cb_tensor* tensor, int64_t offset, bool is_written);
  cb_tensor* copy_descriptor(const cb_tensor& seen);
  void note_tensor(Instruction& instruction, cb_tensor* tensor, Storage* storage, bool is_written);
  void note_value(Instruction& instruction, const Call& call, int i, const cb_value& seen);
  void note_output(Instruction& instruction, const Output& output, cb_tensor* tensor);
  void add(Instruction instruction);

  uint32_t serial_;
  bool is_active_ = false;
  std::unordered_map<Storage*, int> existing_;
  std::string reason_, reason_file_;
  int reason_line_ = 0;
};

Recorder* thread_recorder();
// This thread's recorder, or null.
inline Recorder* recorder() {
  return may_record() ? thread_recorder() : nullptr;
}
// Off for a scope, for services of the core whose parts the recorder has noted as a whole.
class NoRecording {
 public:
  NoRecording();
  NoRecording(const NoRecording&) = delete;
  NoRecording& operator=(const NoRecording&) = delete;
  ~NoRecording();

 private:
  Recorder* before_;
};

// Where in the program this thread is: the innermost frame outside Candelabra.
void find_program_line(std::string& file, int& line);

// What differs between two recordings of the same calls, for people; empty if nothing does.
// Arguments may be other memory in each, and begin elsewhere in it.
struct ComparedInput {
  int buffer;
  int64_t offset_in_a, offset_in_b;  // in bytes
};
std::string difference(const Recorder& a, const Recorder& b, const std::vector<ComparedInput>& inputs);

// What a replay of the instruction is called in messages: operator, file and line.
std::string place_of(const Instruction& instruction);

extern PyMethodDef record_functions[];  // record_functions.cpp; ends with an empty entry
bool init_replayer(PyObject* module);   // replayer.cpp

}  // namespace candelabra
