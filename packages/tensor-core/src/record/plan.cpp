// Planning a program: which instructions run, and where the memory lies that they make.
#include <algorithm>
#include <numeric>

#include "interop/interop.hpp"
#include "record/program.hpp"
#include "record/tiles.hpp"

namespace candelabra {

namespace {

constexpr int64_t alignment = 64;
// Larger buffers have memory of their own, only while they are in use. One block for all would be
// as large as the most that is in use at a time, to the end of the call, beside the gradients that
// come into being meanwhile.
constexpr size_t most_in_arena = size_t{1} << 13;

// Empty buffers have an address too.
int64_t aligned(size_t bytes) {
  return (std::max<int64_t>(static_cast<int64_t>(bytes), 1) + alignment - 1) / alignment * alignment;
}

// Whether the instruction does nothing but write its results, and cannot fail. Division by an
// integer zero fails.
bool is_pure(const Instruction& instruction) {
  if (instruction.kind != Instruction::Kind::Kernel) return true;
  if (!instruction.op->elementwise || instruction.is_random || instruction.live) return false;
  return std::all_of(instruction.outputs, instruction.outputs + instruction.output_count, [](const cb_tensor& output) {
    return output.dtype != CB_INT8 && output.dtype != CB_INT16 && output.dtype != CB_INT32 &&
           output.dtype != CB_INT64 && output.dtype != CB_UINT8;
  });
}

}  // namespace

void Program::finish() {
  for (Instruction& instruction : recording_->instructions) {
    if (order_.empty()) device_ = instruction.device;
    check(instruction.device == device_, PyExc_ValueError, "the program uses several devices");
    order_.push_back(&instruction);
  }
  place_buffers();
  drop_dead();
  if (!is_debugged_) {
    delay();
    recompute();
  }
  make_steps();
  if (!is_debugged_) take_over_memory();
  plan_arena();
  plan_steps();
  bases_.resize(planned_.size());
}

void Program::place_buffers() {
  std::vector<RecordedBuffer>& buffers = recording_->buffers;
  planned_.resize(buffers.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].buffer < 0 || inputs[k].pinned) continue;
    Planned& planned = planned_[static_cast<size_t>(inputs[k].buffer)];
    planned.place = Place::Input;
    if (planned.input < 0) planned.input = static_cast<int>(k);
  }
  for (const Produced& one : produced) {
    if (one.from == Produced::From::Memory && !buffers[static_cast<size_t>(one.buffer)].is_existing)
      planned_[static_cast<size_t>(one.buffer)].place = Place::New;
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    RecordedBuffer& buffer = buffers[b];
    Planned& planned = planned_[b];
    planned.bytes = buffer.bytes;
    if (buffer.is_existing) {
      planned.version_change = buffer.existing->version - buffer.version;
      if (planned.place == Place::Input) {
        recording_->forget_existing(static_cast<int>(b));
      } else {
        planned.place = Place::Existing;
      }
      continue;
    }
    if (planned.place == Place::New || buffer.first < 0) continue;
    planned.place = Place::Arena;
    if (buffer.has_constant && !buffer.is_written) {
      planned.place = Place::Constant;
      const NoRecording not_recorded;
      planned.constant = StorageRef(make_storage(device_, buffer.bytes));
      copy_bytes_from_host({*planned.constant, 0}, buffer.constant.data(), buffer.bytes);
    }
  }
}

// Leaves out the instructions whose results nothing uses.
void Program::drop_dead() {
  std::vector<bool> is_needed(planned_.size());
  for (size_t b = 0; b < planned_.size(); ++b) is_needed[b] = planned_[b].place != Place::Arena;
  const auto needed = [&](int b) { return is_needed[static_cast<size_t>(b)]; };
  std::vector<Instruction*> kept;
  for (size_t i = order_.size(); i-- > 0;) {
    Instruction& instruction = *order_[i];
    if (is_pure(instruction) && std::ranges::none_of(instruction.written, needed)) continue;
    for (const Operand& operand : instruction.operands) is_needed[static_cast<size_t>(operand.buffer)] = true;
    kept.push_back(&instruction);
  }
  order_.assign(kept.rbegin(), kept.rend());
}

void Program::make_steps() {
  compile_ = is_debugged_ || order_.empty() ? nullptr : tile_service(device_);
  const int count = static_cast<int>(order_.size());
  for (int i = 0, end = 0; i < count; i = end) {
    end = i + 1;
    if (compile_ && is_tileable(*order_[static_cast<size_t>(i)]))
      while (end < count && joins(*order_[static_cast<size_t>(end)], i, end)) ++end;
    steps_.push_back({i, end, {}, {}, nullptr});
  }
  if (steps_.empty()) steps_.emplace_back();
  note_steps();
  for (Step& step : steps_)
    if (step.end > step.begin + 1) make_tiling(step);
}

void Program::note_steps() {
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    for (int i = steps_[static_cast<size_t>(s)].begin; i < steps_[static_cast<size_t>(s)].end; ++i) {
      for (const Operand& operand : order_[static_cast<size_t>(i)]->operands) {
        Planned& planned = planned_[static_cast<size_t>(operand.buffer)];
        if (planned.begin < 0) planned.begin = s;
        planned.end = s;
      }
    }
  }
}

// Whether two descriptors have all elements of their buffers, in one order.
bool Program::is_same_layout(const Operand& a, const Operand& b) const {
  const auto fills = [&](const Operand& one) {
    const int64_t bytes = one.tensor->numel * itemsize(static_cast<Dtype>(one.tensor->dtype));
    return one.offset == 0 && bytes == static_cast<int64_t>(planned_[static_cast<size_t>(one.buffer)].bytes);
  };
  const auto ndim = static_cast<size_t>(a.tensor->ndim);
  return a.tensor && b.tensor && fills(a) && fills(b) && a.tensor->ndim == b.tensor->ndim &&
         std::equal(a.tensor->sizes, a.tensor->sizes + ndim, b.tensor->sizes) &&
         std::equal(a.tensor->strides, a.tensor->strides + ndim, b.tensor->strides);
}

// An operand whose memory the result of an elementwise instruction can overwrite; -1 if there is
// none.
int Program::dying_operand(const Instruction& instruction, int step) const {
  if (instruction.kind != Instruction::Kind::Kernel || !instruction.op->elementwise || instruction.written.size() != 1)
    return -1;
  const int made = instruction.written.front();
  const auto output = std::ranges::find(instruction.operands, made, &Operand::buffer);
  const Planned& result = planned_[static_cast<size_t>(made)];
  if (result.begin != step || !result.is_made() || recording_->is_constant(made)) return -1;
  if (std::ranges::count(instruction.operands, made, &Operand::buffer) != 1) return -1;
  for (const Operand& operand : instruction.operands) {
    const Planned& planned = planned_[static_cast<size_t>(operand.buffer)];
    const bool is_alone = std::ranges::count(instruction.operands, operand.buffer, &Operand::buffer) == 1;
    if (operand.buffer != made && is_alone && planned.place == Place::Arena && planned.end == step &&
        planned.bytes == result.bytes && is_same_layout(operand, *output))
      return operand.buffer;
  }
  return -1;
}

// The same for the result of a group's last instruction: any operand of the group, since a tile of
// all of them is read before the tile of the result is written.
int Program::dying_operand_of_group(const Step& step, int number) const {
  const Instruction& last = *order_[static_cast<size_t>(step.end - 1)];
  const int made = last.written.front();
  const Planned& result = planned_[static_cast<size_t>(made)];
  if (result.begin != number || !result.is_made() || recording_->is_constant(made)) return -1;
  const Operand& output = *std::ranges::find(last.operands, made, &Operand::buffer);
  std::vector<int> refused{made};
  std::vector<int> found;
  for (int i = step.begin; i < step.end; ++i) {
    const Instruction& instruction = *order_[static_cast<size_t>(i)];
    for (const Operand& operand : instruction.operands) {
      const Planned& planned = planned_[static_cast<size_t>(operand.buffer)];
      const bool may_end = planned.place == Place::Arena && planned.end == number && planned.begin < number &&
                           planned.bytes == result.bytes && is_same_layout(operand, output) &&
                           std::ranges::count(instruction.written, operand.buffer) == 0;
      // Only the last instruction may use the result.
      if (operand.buffer == made && i + 1 < step.end) return -1;
      (may_end ? found : refused).push_back(operand.buffer);
    }
  }
  for (const int buffer : found)
    if (std::ranges::count(refused, buffer) == 0) return buffer;
  return -1;
}

void Program::take_over_memory() {
  for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
    const Step& step = steps_[static_cast<size_t>(s)];
    if (step.end == step.begin) continue;
    const Instruction& last = *order_[static_cast<size_t>(step.end - 1)];
    const int dying = step.tiling ? dying_operand_of_group(step, s) : dying_operand(last, s);
    if (dying < 0) continue;
    const int made = last.written.front();
    Planned& before = planned_[static_cast<size_t>(dying)];
    Planned& result = planned_[static_cast<size_t>(made)];
    result.owner = before.owner < 0 ? dying : before.owner;
    Planned& owner = planned_[static_cast<size_t>(result.owner)];
    owner.end = result.end;
    if (result.place == Place::New) owner.place = Place::New;
  }
}

void Program::plan_arena() {
  std::vector<int> order;
  for (size_t b = 0; b < planned_.size(); ++b) {
    Planned& planned = planned_[b];
    if (planned.place != Place::Arena || planned.owner >= 0) continue;
    if (planned.begin < 0) {
      planned.place = Place::None;
    } else if (planned.bytes > most_in_arena && !is_debugged_) {
      planned.place = Place::Block;
    } else {
      order.push_back(static_cast<int>(b));
    }
  }
  if (is_debugged_) {
    for (const int b : order) {
      planned_[static_cast<size_t>(b)].offset = static_cast<int64_t>(arena_bytes_);
      arena_bytes_ += static_cast<size_t>(aligned(planned_[static_cast<size_t>(b)].bytes));
    }
    return;
  }
  place_in_arena(std::move(order));
  for (Planned& planned : planned_) {
    if (planned.owner < 0) continue;
    planned.place = planned_[static_cast<size_t>(planned.owner)].place;
    planned.offset = planned_[static_cast<size_t>(planned.owner)].offset;
  }
}

// The largest buffers first, each at the lowest offset that no buffer in use at the same time
// covers: greedy by size, of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020).
void Program::place_in_arena(std::vector<int> order) {
  const auto planned = [&](int b) -> Planned& { return planned_[static_cast<size_t>(b)]; };
  std::ranges::stable_sort(order, [&](int a, int b) { return planned(a).bytes > planned(b).bytes; });
  std::vector<int> placed;  // by offset
  for (const int b : order) {
    Planned& one = planned(b);
    const int64_t bytes = aligned(one.bytes);
    int64_t offset = 0;
    for (const int k : placed) {
      const Planned& other = planned(k);
      if (other.end < one.begin || other.begin > one.end) continue;
      if (other.offset >= offset + bytes) break;
      offset = std::max(offset, other.offset + aligned(other.bytes));
    }
    one.offset = offset;
    arena_bytes_ = std::max(arena_bytes_, static_cast<size_t>(offset + bytes));
    placed.insert(std::ranges::upper_bound(placed, offset, {}, [&](int k) { return planned(k).offset; }), b);
  }
}

// Notes where memory begins and ends, and how much is in use at most.
void Program::plan_steps() {
  for (size_t b = 0; b < planned_.size(); ++b) {
    Planned& planned = planned_[b];
    if (!planned.is_made()) continue;
    unplanned_bytes_ += static_cast<size_t>(aligned(planned.bytes));
    // A result that no instruction touches exists too.
    steps_[static_cast<size_t>(std::max(planned.begin, 0))].begins.push_back(static_cast<int>(b));
    if (planned.place != Place::New && planned.owner < 0)
      steps_[static_cast<size_t>(planned.end)].ends.push_back(static_cast<int>(b));
  }
  size_t in_use = arena_bytes_;
  const auto own_bytes = [&](int b) {
    const Planned& planned = planned_[static_cast<size_t>(b)];
    return planned.place == Place::Arena || planned.owner >= 0 ? 0 : static_cast<size_t>(aligned(planned.bytes));
  };
  for (const Step& step : steps_) {
    for (const int b : step.begins) in_use += own_bytes(b);
    planned_bytes_ = std::max(planned_bytes_, in_use);
    for (const int b : step.ends) in_use -= own_bytes(b);
  }
}

}  // namespace candelabra
