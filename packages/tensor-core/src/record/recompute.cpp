// Less memory by another order of the same calls: results are computed as late as their inputs are
// in memory anyway. And by a little more work: an elementwise result that is not used while most
// memory is in use is computed again when it is. The numbers are the same, because the kernels and
// their arguments are.
#include <algorithm>

#include "record/program.hpp"

namespace candelabra {

namespace {

// Smaller buffers are not worth a kernel call.
constexpr int64_t least_bytes = int64_t{1} << 20;
// Of the most memory in use, in hundredths: less is not worth the work.
constexpr int64_t least_saving = 4;

bool writes(const Instruction& instruction, int buffer) {
  return std::ranges::find(instruction.written, buffer) != instruction.written.end();
}

bool uses(const Instruction& instruction, int buffer) {
  return std::ranges::find(instruction.operands, buffer, &Operand::buffer) != instruction.operands.end();
}

// Whether the instruction writes one buffer, of which it reads nothing, and computes the same when
// it runs again.
bool is_repeatable(const Instruction& writer) {
  if (writer.kind != Instruction::Kind::Kernel || writer.is_random || writer.live) return false;
  const int written = writer.written.front();
  const auto others = [&](const Operand& operand) { return operand.buffer != written; };
  // The result and the argument that is overwritten are one tensor.
  if (writer.op->schema.name == "copy_")
    return std::ranges::count_if(writer.operands, others) == 1 && writer.operands.size() == 3;
  return writer.op->elementwise && !writer.op->returns_self && writer.written.size() == 1 &&
         std::ranges::count_if(writer.operands, others) == static_cast<int64_t>(writer.operands.size()) - 1;
}

}  // namespace

// The place before which the instruction may run without memory of its inputs lasting longer.
int Program::latest_place(int at) const {
  const Instruction& moved = *order_[static_cast<size_t>(at)];
  if (moved.kind != Instruction::Kind::Kernel || moved.is_random || moved.live || (moved.op->tags & tag_custom))
    return at;
  // What fails must fail before the calls whose effects remain.
  const auto remains = [&](int buffer) {
    const Place place = planned_[static_cast<size_t>(buffer)].place;
    return place == Place::Existing || place == Place::Input;
  };
  int latest = at + 1;
  while (latest < static_cast<int>(order_.size()) &&
         std::ranges::none_of(order_[static_cast<size_t>(latest)]->written, remains))
    ++latest;
  for (const Operand& operand : moved.operands) {
    const bool is_written = writes(moved, operand.buffer);
    const Place place = planned_[static_cast<size_t>(operand.buffer)].place;
    // The memory of results begins where they are written, and does not end.
    if (is_written && place != Place::Arena && place != Place::New) return at;
    int last = at;
    for (int i = at + 1; i < static_cast<int>(order_.size()); ++i) {
      const Instruction& other = *order_[static_cast<size_t>(i)];
      if (!uses(other, operand.buffer)) continue;
      last = i;
      if (is_written || writes(other, operand.buffer)) latest = std::min(latest, i);
    }
    if (!is_written && place == Place::Arena) latest = std::min(latest, last);
  }
  return latest;
}

void Program::delay() {
  for (int i = static_cast<int>(order_.size()) - 1; i >= 0; --i) {
    const Instruction& moved = *order_[static_cast<size_t>(i)];
    const auto bytes = [&](int b) { return static_cast<int64_t>(planned_[static_cast<size_t>(b)].bytes); };
    if (std::ranges::none_of(moved.written, [&](int b) { return bytes(b) >= least_bytes; })) continue;
    const int place = latest_place(i);
    if (place > i + 1) std::rotate(order_.begin() + i, order_.begin() + i + 1, order_.begin() + place);
  }
}

void Program::recompute() {
  const std::vector<Instruction*> plain = order_;
  int at = 0;
  const int64_t before = most_in_use(at);
  // Each round lowers what is in use at one place, or is the last.
  while (recompute_one()) {
  }
  if (order_.size() == plain.size() || (before - most_in_use(at)) * 100 >= before * least_saving) return;
  order_ = plain;
  changed_.clear();
  planned_.resize(recording_->buffers.size());
}

// The most bytes of memory made in a replay that are in use at a time, and before which
// instruction. Leaves the lifetimes of buffers, by instruction.
int64_t Program::most_in_use(int& at) const {
  std::vector<int64_t> change(order_.size() + 1);
  std::vector<std::pair<int, int>> lifetimes(planned_.size(), {-1, -1});
  for (int i = 0; i < static_cast<int>(order_.size()); ++i) {
    for (const Operand& operand : order_[static_cast<size_t>(i)]->operands) {
      auto& [begin, end] = lifetimes[static_cast<size_t>(operand.buffer)];
      if (begin < 0) begin = i;
      end = i;
    }
  }
  for (size_t b = 0; b < planned_.size(); ++b) {
    const auto [begin, end] = lifetimes[b];
    if (begin < 0 || !planned_[b].is_made()) continue;
    change[static_cast<size_t>(begin)] += static_cast<int64_t>(planned_[b].bytes);
    if (planned_[b].place != Place::New)
      change[static_cast<size_t>(end) + 1] -= static_cast<int64_t>(planned_[b].bytes);
  }
  int64_t in_use = 0, most = 0;
  for (int i = 0; i < static_cast<int>(order_.size()); ++i) {
    in_use += change[static_cast<size_t>(i)];
    if (in_use > most) {
      most = in_use;
      at = i;
    }
  }
  return most;
}

// Whether an input of the writer has at `to` the contents that it had at `from`, and exists there
// for the sake of others.
bool Program::is_stable(const Instruction& writer, int buffer, int from, int to) const {
  const auto begin = order_.begin();
  for (const Operand& operand : writer.operands) {
    if (operand.buffer == buffer) continue;
    if (std::any_of(begin + from + 1, begin + to, [&](const Instruction* one) { return writes(*one, operand.buffer); }))
      return false;
    if (planned_[static_cast<size_t>(operand.buffer)].place != Place::Arena) continue;
    if (std::none_of(begin + to, order_.end(), [&](const Instruction* one) { return uses(*one, operand.buffer); }))
      return false;
  }
  return true;
}

// Runs the writer again before `at`; what follows uses its new result.
void Program::insert_copy(const Instruction& writer, int buffer, int at) {
  const int made = static_cast<int>(planned_.size());
  Planned& planned = planned_.emplace_back();
  planned.place = Place::Arena;
  planned.bytes = planned_[static_cast<size_t>(buffer)].bytes;
  const auto renamed = [&](const Instruction& instruction) {
    Instruction& copy = *changed_.emplace_back(std::make_unique<Instruction>(instruction));
    for (Operand& operand : copy.operands)
      if (operand.buffer == buffer) operand.buffer = made;
    std::ranges::replace(copy.value_buffers, buffer, made);
    std::ranges::replace(copy.written, buffer, made);
    return &copy;
  };
  for (size_t i = static_cast<size_t>(at); i < order_.size(); ++i)
    if (uses(*order_[i], buffer)) order_[i] = renamed(*order_[i]);
  order_.insert(order_.begin() + at, renamed(writer));
}

bool Program::recompute_one() {
  int most = 0;
  if (most_in_use(most) < 2 * least_bytes) return false;
  int64_t best_bytes = 0;
  int best = -1, best_writer = -1, best_use = -1;
  for (size_t b = 0; b < planned_.size(); ++b) {
    const auto bytes = static_cast<int64_t>(planned_[b].bytes);
    if (planned_[b].place != Place::Arena || bytes < least_bytes || bytes <= best_bytes) continue;
    const int buffer = static_cast<int>(b);
    int writer = -1, use = -1;
    bool is_candidate = true;
    for (int i = 0; i < static_cast<int>(order_.size()) && is_candidate; ++i) {
      const Instruction& instruction = *order_[static_cast<size_t>(i)];
      if (!uses(instruction, buffer)) continue;
      if (writes(instruction, buffer)) is_candidate = std::exchange(writer, i) < 0 && is_repeatable(instruction);
      if (i == most) is_candidate = false;
      if (i > most && use < 0) use = i;
    }
    if (!is_candidate || writer < 0 || writer > most || use < 0) continue;
    if (!is_stable(*order_[static_cast<size_t>(writer)], buffer, writer, use)) continue;
    best_bytes = bytes;
    best = buffer, best_writer = writer, best_use = use;
  }
  if (best < 0) return false;
  insert_copy(*order_[static_cast<size_t>(best_writer)], best, best_use);
  return true;
}

}  // namespace candelabra
