// A program: the instructions of a recording with planned memory, replayed from C++.
#pragma once

#include "candelabra/compile.h"
#include "record/guards.hpp"
#include "record/recorder.hpp"

namespace candelabra {

// A tensor that a program takes: an argument, or the gradient of a parameter when the call begins.
struct Input {
  PyTypeObject* type = nullptr;
  Dtype dtype = Dtype::Float32;
  Dims sizes, strides;
  Device device;
  bool requires_grad = false;
  bool is_inference = false;
  bool has_history = false;
  // Of an argument of a function, whose code may look at the object.
  bool is_argument = false;
  bool is_view = false;
  int same_as = -1;                // the first input that is the same object
  const void* identity = nullptr;  // of the recorded object, while the program is made
  int64_t offset = 0;              // in bytes
  int buffer = -1;
  StorageRef pinned;    // the argument must have this memory: the program also reaches it otherwise
  TensorRef parameter;  // the gradient is taken from here
};

// A tensor that a program gives: a result, or the new gradient of a parameter.
struct Produced {
  enum class From : uint8_t { Memory, Object, Input, ViewOfInput };
  From from = From::Memory;
  Ref<> object;  // of Object
  int input = -1;
  int buffer = -1;
  Dtype dtype = Dtype::Float32;
  Dims sizes, strides;
  int64_t offset = 0;   // in elements, from the beginning of the buffer or of the input's element 0
  Ref<> node;           // of a result that a backward pass has used up: what its grad_fn becomes
  TensorRef parameter;  // of a gradient: where it goes
};

// How a group of elementwise instructions runs tile by tile (tiles.cpp).
struct Tiling;
struct DeleteTiling {
  void operator()(Tiling* tiling) const;
};

class Program {
 public:
  Program(std::shared_ptr<Recorder> recording, bool is_debugged);

  // Set by Python once, before the first replay (record_functions.cpp).
  ArgumentTree arguments;
  ResultTree result;
  std::vector<Input> inputs;
  std::vector<Produced> produced;  // results first, then gradients
  std::vector<TensorRef> cleared;  // parameters whose gradient the call gives up before it uses it
  std::vector<TensorRef> cleared_last;
  std::vector<std::shared_ptr<Guard>> guards;
  // Plans the memory. Throws ValueError where memory that outlives the call has no tensor.
  void finish();

  // Whether groups compute the bits of their kernels. Set before finish().
  bool is_exact = true;
  // Calls until the next one that is recorded again.
  int64_t calls_left = 0;

  // Whether the program computes this call, whose tensors are left in `tensors`.
  bool accepts(PyObject* const* values, Py_ssize_t count, PyObject* names, std::vector<TensorObject*>& tensors);
  // Replays. Returns the result, a new reference; throws.
  PyObject* run(const std::vector<TensorObject*>& tensors);
  bool is_running() const { return is_running_; }

  // For the collector of cycles: of what Python sees of the program. After clear() it fits no call.
  int visit(visitproc visit, void* arg) const;
  void clear();

  // The most bytes of memory made in a replay that are in use at a time, results included.
  size_t planned_bytes() const { return planned_bytes_; }
  // The same if no memory were reused.
  size_t unplanned_bytes() const { return unplanned_bytes_; }
  // How many instructions a replay runs.
  size_t size() const { return order_.size(); }
  // Of groups of instructions that run tile by tile.
  std::vector<int> group_sizes() const;
  // How many instructions of each group the backend has compiled, which it does now if it has not.
  std::vector<int> compiled_sizes();
  Recorder& recording() { return *recording_; }
  std::shared_ptr<Recorder> shared_recording() { return recording_; }

 private:
  // Block: memory of its own from its first use to its last. New: the same, and it outlives the
  // call. Tile: no memory but that of the tiles of one group.
  enum class Place : uint8_t { None, Input, Existing, Arena, Block, New, Constant, Tile };
  struct Planned {
    Place place = Place::None;
    int64_t offset = 0;  // in the arena
    int input = -1;      // the first input that is in this buffer
    StorageRef constant;
    uint32_t version_change = 0;
    size_t bytes = 0;
    int begin = -1, end = -1;  // the steps that use it first and last; -1: none does
    int owner = -1;            // the buffer whose memory it takes over, which then ends where it ends
    bool is_made() const { return place == Place::Arena || place == Place::Block || place == Place::New; }
  };
  // What runs at once, and the memory that its first instruction needs and that its last gives up.
  struct Step {
    int begin = 0, end = 0;  // in order_
    std::vector<int> begins, ends;
    std::unique_ptr<Tiling, DeleteTiling> tiling;  // of a group
  };
  struct Base {
    Storage* storage = nullptr;
    int64_t offset = 0;
  };
  // The storages of one run, by buffer.
  using Owned = std::vector<StorageRef>;

  // Planning, in this order.
  void place_buffers();
  void drop_dead();
  void delay();
  void recompute();
  void make_steps();
  void note_steps();
  bool is_tileable(const Instruction& instruction) const;
  bool joins(const Instruction& instruction, int begin, int end) const;
  void make_tiling(Step& step);
  void place_in_tiles(const Step& step, Tiling& tiling);
  void run_tiles(const Step& step);
  void take_over_memory();
  bool is_same_layout(const Operand& a, const Operand& b) const;
  int dying_operand(const Instruction& instruction, int step) const;
  int dying_operand_of_group(const Step& step, int number) const;
  void plan_arena();
  void place_in_arena(std::vector<int> order);
  void plan_steps();

  int latest_place(int at) const;
  bool recompute_one();
  int64_t most_in_use(int& at) const;
  bool is_stable(const Instruction& writer, int buffer, int from, int to) const;
  void insert_copy(const Instruction& writer, int buffer, int at);

  bool fits_inputs(const std::vector<TensorObject*>& tensors) const;
  bool is_like_argument(const std::vector<TensorObject*>& tensors, size_t k) const;
  void set_bases(const std::vector<TensorObject*>& tensors, StorageRef& arena);
  void begin_memory(const Step& step, Owned& owned, const StorageRef& arena);
  void end_memory(const Step& step, Owned& owned);
  void execute(Instruction& instruction);
  void take_live(Instruction& instruction);
  void note_changes(const Instruction& instruction);
  Ref<> make(const Produced& produced, const std::vector<TensorObject*>& tensors) const;

  std::shared_ptr<Recorder> recording_;
  bool is_debugged_;
  bool is_running_ = false;
  bool is_cleared_ = false;
  Device device_;
  const cb_compile* compile_ = nullptr;  // of the backend, if it runs tiles
  std::vector<Planned> planned_;         // by buffer of the recording, then those of `changed_`
  std::vector<Base> bases_;
  std::vector<Instruction*> order_;
  // Instructions that the recording has not, or has with other buffers.
  std::vector<std::unique_ptr<Instruction>> changed_;
  std::vector<Step> steps_;
  size_t arena_bytes_ = 0, planned_bytes_ = 0, unplanned_bytes_ = 0;
};

// Whether this thread replays programs.
extern thread_local bool is_replaying;

}  // namespace candelabra
