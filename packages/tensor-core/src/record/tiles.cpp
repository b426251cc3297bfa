#include "record/tiles.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <numeric>

#include "device/host_services.hpp"
#include "python/errors.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

// Elements from which tiles are worth their calls.
constexpr int64_t least_numel = int64_t{1} << 16;
// The memory that the tensors of a tile have together, for it to stay in a cache of the processor
// core.
constexpr int64_t tile_bytes = int64_t{3} << 17;
// Tiles consist of units. A call of a kernel costs as much as the work on a few hundred elements,
// so that shorter tiles do not pay.
constexpr int64_t unit = int64_t{1} << 10;
constexpr int64_t longest_tile = 32 * unit, least_part = 8 * unit;
constexpr int64_t alignment = 64;

int64_t itemsize_of(const cb_tensor& tensor) {
  return itemsize(static_cast<Dtype>(tensor.dtype));
}

bool is_number(const cb_tensor& tensor) {
  return tensor.flags & CB_TENSOR_NUMBER;
}

// Whether all elements are one.
bool is_repeated(const cb_tensor& tensor) {
  for (int d = 0; d < tensor.ndim; ++d)
    if (tensor.sizes[d] > 1 && tensor.strides[d] != 0) return false;
  return true;
}

// Whether the elements fill a range of memory, in some order of the dimensions.
bool is_dense(const cb_tensor& tensor) {
  std::vector<int> order;
  for (int d = 0; d < tensor.ndim; ++d)
    if (tensor.sizes[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  int64_t expected = 1;
  for (const int d : order) {
    if (tensor.strides[d] != expected) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

bool is_laid_out_like(const cb_tensor& a, const cb_tensor& b) {
  if (a.ndim != b.ndim || !std::equal(a.sizes, a.sizes + a.ndim, b.sizes)) return false;
  for (int d = 0; d < a.ndim; ++d)
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

// Kernels of integers may fail, and must then have computed nothing of what follows.
bool is_tiled_dtype(int32_t dtype) {
  return dtype == CB_BOOL || dtype == CB_FLOAT16 || dtype == CB_BFLOAT16 || dtype == CB_FLOAT32 || dtype == CB_FLOAT64;
}

// Kernels of groups need no services, and must not get the ones that take the GIL.
int32_t refuse_output(cb_call*, int32_t, int32_t, const int64_t*) {
  return CB_RUNTIME_ERROR;
}
int32_t refuse_workspace(cb_call*, uint64_t, cb_memory*) {
  return CB_RUNTIME_ERROR;
}
int32_t never_cancelled(cb_call*) {
  return 0;
}
void run_serially(int64_t begin, int64_t end, int64_t, void (*body)(void*, int64_t, int64_t), void* context) {
  if (begin < end) body(context, begin, end);
}

const cb_host& tile_services() {
  static const cb_host services = [] {
    cb_host made = host_services;
    made.allocate_output = refuse_output;
    made.allocate_workspace = refuse_workspace;
    made.is_cancelled = never_cancelled;
    made.parallel_for = run_serially;
    return made;
  }();
  return services;
}

constexpr int64_t unit_stride = 1, no_stride = 0;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// This thread's memory for tiles, which it keeps.
std::byte* tile_memory(size_t bytes) {
  static thread_local std::unique_ptr<std::byte, FreeMemory> memory;
  static thread_local size_t capacity = 0;
  if (bytes > capacity) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, rounded)));
    capacity = memory ? rounded : 0;
  }
  return memory.get();
}

// One run of a group, on several threads.
class GroupRun {
 public:
  GroupRun(const Tiling& tiling, std::vector<char*> addresses, std::vector<char*> expanded, Device device,
           const cb_compile& service)
      : tiling_(tiling),
        addresses_(std::move(addresses)),
        expanded_(std::move(expanded)),
        device_(device),
        service_(service) {}

  void run() {
    service_.parallel_for(
        0, (tiling_.numel + unit - 1) / unit, least_part / unit,
        [](void* self, int64_t begin, int64_t end) { static_cast<GroupRun*>(self)->run_part(begin, end); }, this);
  }

  void check_status() const {
    if (status_ == CB_OK) return;
    raise(exception_of_status(status_), message_.empty() ? "no memory for tiles" : message_,
          " (in a compiled program)");
  }

 private:
  // The calls of one thread, whose tensors it moves from tile to tile.
  struct Part {
    int64_t size = 0;
    std::vector<cb_tensor> tensors;
    std::vector<cb_value> values;
    std::vector<cb_call> calls;
    std::vector<const void*> inputs;  // of one compiled run
    std::vector<void*> outputs;
    char error[512] = {};
  };

  void fill(Part& part) const {
    size_t tensor_count = 0, value_count = 0;
    for (const TiledCall& call : tiling_.calls) {
      tensor_count += call.tensors.size();
      value_count += static_cast<size_t>(call.instruction->value_count);
    }
    part.tensors.resize(tensor_count);
    part.values.resize(value_count);
    part.calls.resize(tiling_.calls.size());
    cb_tensor* tensor = part.tensors.data();
    cb_value* values = part.values.data();
    for (size_t k = 0; k < tiling_.calls.size(); ++k) {
      const Instruction& instruction = *tiling_.calls[k].instruction;
      std::copy_n(instruction.values, instruction.value_count, values);
      cb_call& call = part.calls[k];
      call = {};
      call.size = sizeof(cb_call);
      call.host = &tile_services();
      call.backend = instruction.kernel.backend;
      const Operator& op = *instruction.op;
      call.operator_name = op.functional ? op.functional->schema.name.c_str() : op.schema.name.c_str();
      call.device_index = device_.index;
      call.output_count = 1;
      call.argument_count = instruction.value_count;
      call.arguments = values;
      call.error = part.error;
      call.error_capacity = sizeof part.error;
      for (const TiledTensor& one : tiling_.calls[k].tensors) {
        *tensor = *one.tensor;
        tensor->ndim = 1;
        tensor->sizes = &part.size;
        tensor->strides = one.step ? &unit_stride : &no_stride;
        tensor->storage = nullptr;
        tensor->offset = 0;
        if (one.value < 0) {
          call.outputs = tensor;
        } else {
          values[one.value].as.tensor = tensor;
        }
        ++tensor;
      }
      values += instruction.value_count;
    }
  }

  char* memory_of(const Expansion& expansion, std::byte* scratch) const {
    return reinterpret_cast<char*>(scratch) + expansion.scratch;
  }

  void write_expansions(std::byte* scratch) const {
    for (size_t k = 0; k < expanded_.size(); ++k) {
      const Expansion& one = tiling_.expansions[k];
      expand(one, expanded_[k], one.capacity(tiling_.length), memory_of(one, scratch));
    }
  }

  void move_to(Part& part, int64_t begin, int64_t end, std::byte* scratch) const {
    part.size = std::min(end, tiling_.numel) - begin;
    cb_tensor* tensor = part.tensors.data();
    char* const* address = addresses_.data();
    for (const TiledCall& call : tiling_.calls) {
      for (const TiledTensor& one : call.tensors) {
        tensor->numel = part.size;
        if (one.expansion >= 0) {
          const Expansion& from = tiling_.expansions[static_cast<size_t>(one.expansion)];
          tensor->data = memory_of(from, scratch) + from.phase(begin);
        } else if (one.buffer >= 0) {
          tensor->data =
              one.scratch >= 0 ? reinterpret_cast<char*>(scratch) + one.scratch : *address + begin * one.step;
        }
        ++tensor;
        ++address;
      }
    }
  }

  // The part's tiles, in units, are equally long.
  void run_part(int64_t begin, int64_t end) noexcept {
    try {
      Part part;
      fill(part);
      std::byte* const scratch = tiling_.scratch_bytes ? tile_memory(tiling_.scratch_bytes) : nullptr;
      if (tiling_.scratch_bytes && !scratch) return fail(CB_OUT_OF_MEMORY, "");
      write_expansions(scratch);
      const int64_t tiles = ((end - begin) * unit + tiling_.length - 1) / tiling_.length;
      const auto begin_of = [&](int64_t tile) { return (begin + (end - begin) * tile / tiles) * unit; };
      for (int64_t tile = 0; tile < tiles && !has_failed_.load(std::memory_order_relaxed); ++tile) {
        move_to(part, begin_of(tile), begin_of(tile + 1), scratch);
        const CompiledRun* compiled = tiling_.runs.data();
        const CompiledRun* const last = compiled + tiling_.runs.size();
        for (size_t k = 0; k < part.calls.size(); ++k) {
          if (compiled != last && compiled->begin == static_cast<int>(k)) {
            if (!run_compiled(*compiled, part)) return;
            k = static_cast<size_t>(compiled++->end) - 1;
            continue;
          }
          const int32_t status = tiling_.calls[k].instruction->kernel.compiled(&part.calls[k]);
          if (status == CB_OK) [[likely]]
            continue;
          part.error[sizeof part.error - 1] = 0;
          return fail(status,
                      text(part.calls[k].operator_name, "(): ", part.error[0] ? part.error : "the kernel failed"));
        }
      }
    } catch (const std::bad_alloc&) {
      fail(CB_OUT_OF_MEMORY, "");
    }
  }

  bool run_compiled(const CompiledRun& compiled, Part& part) {
    part.inputs.clear();
    part.outputs.clear();
    for (const size_t place : compiled.inputs) part.inputs.push_back(part.tensors[place].data);
    for (const size_t place : compiled.outputs) part.outputs.push_back(part.tensors[place].data);
    const cb_graph_run tile{sizeof(cb_graph_run), part.size, part.inputs.data(), part.outputs.data()};
    const int32_t status = service_.execute(compiled.compiled.get(), &tile);
    if (status == CB_OK) [[likely]]
      return true;
    const char* const message = device_type(device_).table->last_error();
    fail(status, message && *message ? message : "the compiled operators failed");
    return false;
  }

  void fail(int32_t status, const std::string& message) {
    if (has_failed_.exchange(true)) return;
    message_ = message;
    status_ = status;
  }

  const Tiling& tiling_;
  std::vector<char*> addresses_;  // of each tensor: where its element 0 lies
  std::vector<char*> expanded_;   // the same of each expansion
  Device device_;
  const cb_compile& service_;
  std::atomic<bool> has_failed_{false};
  int32_t status_ = CB_OK;
  std::string message_;
};

}  // namespace

std::vector<TiledTensor> tiled_tensors(const Instruction& instruction) {
  std::vector<TiledTensor> result;
  const cb_tensor& output = instruction.outputs[0];
  const auto operand_of = [&](const cb_tensor* tensor) {
    return std::ranges::find(instruction.operands, tensor, &Operand::tensor);
  };
  const auto add = [&](const cb_tensor* tensor, int value) {
    TiledTensor& one = result.emplace_back();
    one.tensor = tensor;
    one.value = value;
    if (is_number(*tensor)) return;
    const auto operand = operand_of(tensor);
    one.buffer = operand->buffer;
    one.offset = operand->offset;
    one.step = is_repeated(*tensor) ? 0 : itemsize_of(*tensor);
    one.is_expanded = one.step > 0 && !is_laid_out_like(*tensor, output);
  };
  for (int i = 0; i < instruction.value_count; ++i)
    if (instruction.values[i].kind == CB_TENSOR) add(instruction.values[i].as.tensor, i);
  add(&output, -1);
  return result;
}

void DeleteTiling::operator()(Tiling* tiling) const {
  delete tiling;
}

const cb_compile* tile_service(Device device) {
  const DeviceType& type = device_type(device);
  if (!type.original || !type.original->extension || !type.has(CB_CAP_HOST_MEMORY) || type.has(CB_CAP_ASYNCHRONOUS))
    return nullptr;
  const auto* service = static_cast<const cb_compile*>(type.original->extension("compile"));
  return service && service->size >= offsetof(cb_compile, claim) && service->parallel_for ? service : nullptr;
}

// Whether an instruction may be part of a group: elementwise, on tensors of one layout and on
// single elements, with a result in memory of the program's own.
bool Program::is_tileable(const Instruction& instruction) const {
  if (instruction.kind != Instruction::Kind::Kernel || !instruction.op->elementwise || !instruction.kernel.compiled ||
      instruction.is_random || instruction.live || instruction.output_count != 1 ||
      (instruction.kernel.flags & CB_KERNEL_READS_VERSIONS))
    return false;
  // Memory from elsewhere may be another tensor's too, unknown to the core.
  const Place place = planned_[static_cast<size_t>(instruction.written.front())].place;
  if (place != Place::Arena && place != Place::New) return false;
  const cb_tensor& output = instruction.outputs[0];
  if (output.numel < least_numel || !is_dense(output)) return false;
  if (!is_tiled_dtype(output.dtype) && !is_claimed(instruction, *compile_, is_exact)) return false;
  for (int i = 0; i < instruction.value_count; ++i) {
    const cb_value& value = instruction.values[i];
    if (value.kind == CB_TENSORS) return false;
    if (value.kind != CB_TENSOR || is_number(*value.as.tensor)) continue;
    if (value.as.tensor->numel != output.numel) return false;
    if (!is_laid_out_like(*value.as.tensor, output) && !is_repeated(*value.as.tensor) &&
        !expansion_of(*value.as.tensor, output))
      return false;
  }
  return true;
}

// Whether the instruction can join the group [begin, end) before it: a tile of it needs the same
// tile of what the group has written, and overwrites nothing that the group has yet to read.
bool Program::joins(const Instruction& instruction, int begin, int end) const {
  if (!is_tileable(instruction) || instruction.outputs[0].numel != order_[static_cast<size_t>(begin)]->outputs[0].numel)
    return false;
  const std::vector<TiledTensor> mine = tiled_tensors(instruction);
  for (int i = begin; i < end; ++i) {
    const Instruction& other = *order_[static_cast<size_t>(i)];
    for (const TiledTensor& theirs : tiled_tensors(other)) {
      for (const TiledTensor& one : mine) {
        if (one.buffer < 0 || one.buffer != theirs.buffer) continue;
        const bool is_same = one.offset == theirs.offset && one.step == theirs.step && one.step > 0 &&
                             !one.is_expanded && !theirs.is_expanded;
        const auto writes = [&](const Instruction& by) { return std::ranges::count(by.written, one.buffer) > 0; };
        if (!is_same && (writes(instruction) || writes(other))) return false;
      }
    }
  }
  return true;
}

void Program::make_tiling(Step& step) {
  step.tiling.reset(new Tiling);
  Tiling& tiling = *step.tiling;
  tiling.numel = order_[static_cast<size_t>(step.begin)]->outputs[0].numel;
  for (int i = step.begin; i < step.end; ++i)
    tiling.calls.push_back({order_[static_cast<size_t>(i)], tiled_tensors(*order_[static_cast<size_t>(i)])});
  place_in_tiles(step, tiling);
  claim_runs(tiling, *compile_, is_exact);
}

namespace {

// Equal operands of several calls are written once.
void add_expansion(Tiling& tiling, TiledTensor& one, const cb_tensor& output) {
  Expansion wanted = *expansion_of(*one.tensor, output);
  wanted.buffer = one.buffer;
  wanted.offset = one.offset;
  const auto known = std::ranges::find(tiling.expansions, wanted);
  one.expansion = static_cast<int>(known - tiling.expansions.begin());
  if (known == tiling.expansions.end()) tiling.expansions.push_back(wanted);
}

}  // namespace

// Buffers that only the group uses get memory for one tile, which they share where their lives in
// the group do not overlap.
void Program::place_in_tiles(const Step& step, Tiling& tiling) {
  struct Slot {
    int64_t itemsize;
    int last;  // the call that uses it last
  };
  std::vector<Slot> slots;
  std::vector<std::pair<int, size_t>> slot_of;  // by buffer
  const int number = static_cast<int>(&step - steps_.data());
  const auto last_use = [&](int buffer) {
    int last = -1;
    for (int k = 0; k < static_cast<int>(tiling.calls.size()); ++k)
      for (const TiledTensor& one : tiling.calls[static_cast<size_t>(k)].tensors)
        if (one.buffer == buffer) last = k;
    return last;
  };
  std::vector<int> outside;
  std::vector<std::pair<int, int64_t>> external;
  int64_t bytes = 0;  // of one element, in all tensors that the tile has
  for (int k = 0; k < static_cast<int>(tiling.calls.size()); ++k) {
    for (TiledTensor& one : tiling.calls[static_cast<size_t>(k)].tensors) {
      if (one.buffer < 0) continue;
      if (one.is_expanded) {
        add_expansion(tiling, one, order_[static_cast<size_t>(step.begin + k)]->outputs[0]);
        continue;
      }
      Planned& planned = planned_[static_cast<size_t>(one.buffer)];
      auto known = std::ranges::find(slot_of, one.buffer, &std::pair<int, size_t>::first);
      const bool is_inside = planned.place == Place::Arena && planned.begin == number && planned.end == number &&
                             !recording_->is_constant(one.buffer);
      // What begins as an argument, such as of fill_(), has memory.
      if (one.value >= 0 && known == slot_of.end()) outside.push_back(one.buffer);
      if (known == slot_of.end() && is_inside && std::ranges::count(outside, one.buffer) == 0) {
        planned.place = Place::Tile;
        // An output may lie where an input of the same call ends.
        auto slot = std::ranges::find_if(slots, [&](const Slot& s) { return s.last <= k && s.itemsize == one.step; });
        if (slot == slots.end()) slot = slots.insert(slot, {one.step, k});
        slot->last = last_use(one.buffer);
        slot_of.emplace_back(one.buffer, static_cast<size_t>(slot - slots.begin()));
        known = slot_of.end() - 1;
      }
      if (known == slot_of.end()) {
        const std::pair<int, int64_t> place{one.buffer, one.offset};
        if (one.step > 0 && std::ranges::count(external, place) == 0) {
          external.push_back(place);
          bytes += one.step;
        }
        continue;
      }
      one.scratch = static_cast<int64_t>(known->second);
    }
  }
  for (const Slot& slot : slots) bytes += slot.itemsize;
  for (const Expansion& one : tiling.expansions) bytes += one.itemsize;
  tiling.length = std::clamp(tile_bytes / std::max<int64_t>(bytes, 1) / unit * unit, unit, longest_tile);
  std::vector<int64_t> begins;
  int64_t end = 0;
  for (const Slot& slot : slots) {
    begins.push_back(end);
    end += (slot.itemsize * tiling.length + alignment - 1) / alignment * alignment;
  }
  for (Expansion& one : tiling.expansions) {
    one.scratch = end;
    end += (one.itemsize * one.capacity(tiling.length) + alignment - 1) / alignment * alignment;
  }
  tiling.scratch_bytes = static_cast<size_t>(end);
  for (TiledCall& call : tiling.calls)
    for (TiledTensor& one : call.tensors)
      if (one.expansion >= 0)
        one.scratch = tiling.expansions[static_cast<size_t>(one.expansion)].scratch;
      else if (one.scratch >= 0)
        one.scratch = begins[static_cast<size_t>(one.scratch)];
}

std::vector<int> Program::group_sizes() const {
  std::vector<int> sizes;
  for (const Step& step : steps_)
    if (step.tiling) sizes.push_back(step.end - step.begin);
  return sizes;
}

std::vector<int> Program::compiled_sizes() {
  std::vector<int> sizes;
  for (Step& step : steps_) {
    if (!step.tiling) continue;
    if (!step.tiling->is_compiled) compile_runs(*step.tiling, *compile_, is_exact);
    int size = 0;
    for (const CompiledRun& run : step.tiling->runs) size += run.end - run.begin;
    sizes.push_back(size);
  }
  return sizes;
}

void Program::run_tiles(const Step& step) {
  const auto address_of = [&](int buffer, int64_t offset) {
    const Base& base = bases_[static_cast<size_t>(buffer)];
    return static_cast<char*>(base.storage->data) + base.offset + offset;
  };
  std::vector<char*> addresses, expanded;
  for (const TiledCall& call : step.tiling->calls)
    for (const TiledTensor& one : call.tensors)
      addresses.push_back(one.buffer >= 0 && one.scratch < 0 ? address_of(one.buffer, one.offset) : nullptr);
  for (const Expansion& one : step.tiling->expansions) expanded.push_back(address_of(one.buffer, one.offset));
  if (!step.tiling->is_compiled) compile_runs(*step.tiling, *compile_, is_exact);
  GroupRun run(*step.tiling, std::move(addresses), std::move(expanded), device_, *compile_);
  {
    const GilReleased unlocked;
    run.run();
  }
  run.check_status();
}

}  // namespace candelabra
