#include "record/claimed_groups.hpp"

#include <algorithm>
#include <cstddef>

#include "python/errors.hpp"
#include "record/group_files.hpp"
#include "record/tiles.hpp"

namespace candelabra {

namespace {

constexpr int64_t unit_stride = 1, no_stride = 0;
// In elements: of a group that is one loop.
constexpr int64_t longest_tile = int64_t{1} << 18;

// The graph of some calls of a group. Reads of a buffer that a call has written before are edges;
// all other reads are inputs.
class GroupGraph {
 public:
  GroupGraph(const Tiling& tiling, int begin, int end, bool is_exact);
  GroupGraph(const GroupGraph&) = delete;
  GroupGraph& operator=(const GroupGraph&) = delete;

  // False where the same memory is read in two ways.
  bool is_valid() const { return is_valid_; }
  const cb_graph& graph() const { return graph_; }
  // Where the addresses of inputs and outputs are found, among the tensors of all calls.
  std::vector<size_t> input_places, output_places;

 private:
  struct Known {
    int buffer, expansion;
    int64_t offset, step;
    int32_t dtype;
    int number;     // among tensors_
    size_t place;   // where it was seen first
    bool is_made;   // by a call of this graph
    bool is_inner;  // only this graph uses it
  };

  int add(const TiledTensor& one);
  int read(const TiledTensor& one, size_t place);
  int write(const TiledTensor& one, size_t place, bool is_inner);
  bool is_used_outside(const Tiling& tiling, int buffer, int begin, int end) const;

  int64_t whole_, tile_;
  bool is_valid_ = true;
  std::vector<cb_tensor> tensors_;
  std::vector<std::vector<cb_value>> values_;
  std::vector<cb_graph_node> nodes_;
  std::vector<int32_t> inputs_, outputs_;
  std::vector<Known> known_;
  cb_graph graph_{};
};

GroupGraph::GroupGraph(const Tiling& tiling, int begin, int end, bool is_exact)
    : whole_(tiling.numel), tile_(tiling.length) {
  size_t place = 0, count = 0;
  for (int k = 0; k < end; ++k) {
    const size_t size = tiling.calls[static_cast<size_t>(k)].tensors.size();
    (k < begin ? place : count) += size;
  }
  tensors_.reserve(count);  // nodes point into it
  for (int k = begin; k < end; ++k) {
    const TiledCall& call = tiling.calls[static_cast<size_t>(k)];
    const Instruction& instruction = *call.instruction;
    std::vector<cb_value>& values =
        values_.emplace_back(instruction.values, instruction.values + instruction.value_count);
    int output = -1;
    for (const TiledTensor& one : call.tensors) {
      if (one.value >= 0) {
        values[static_cast<size_t>(one.value)].as.tensor = &tensors_[static_cast<size_t>(read(one, place))];
      } else {
        output = write(one, place, one.scratch >= 0 && !is_used_outside(tiling, one.buffer, begin, end));
      }
      ++place;
    }
    cb_graph_node& node = nodes_.emplace_back();
    node.operator_name = instruction.op->functional ? instruction.op->functional->schema.name.c_str()
                                                    : instruction.op->schema.name.c_str();
    node.arguments = values.data();
    node.argument_count = instruction.value_count;
    node.output = output;
  }
  for (const Known& one : known_) {
    if (!one.is_made || one.is_inner) continue;
    outputs_.push_back(one.number);
    output_places.push_back(one.place);
  }
  graph_.size = sizeof(cb_graph);
  graph_.device_index = tiling.calls[static_cast<size_t>(begin)].instruction->device.index;
  graph_.flags = is_exact ? 0 : CB_GRAPH_INEXACT;
  graph_.tensors = tensors_.data();
  graph_.nodes = nodes_.data();
  graph_.inputs = inputs_.data();
  graph_.outputs = outputs_.data();
  graph_.tensor_count = static_cast<int32_t>(tensors_.size());
  graph_.node_count = static_cast<int32_t>(nodes_.size());
  graph_.input_count = static_cast<int32_t>(inputs_.size());
  graph_.output_count = static_cast<int32_t>(outputs_.size());
}

int GroupGraph::add(const TiledTensor& one) {
  cb_tensor& tensor = tensors_.emplace_back(*one.tensor);
  if (one.buffer >= 0) {
    tensor.data = nullptr;
    tensor.ndim = 1;
    tensor.sizes = one.scratch >= 0 ? &tile_ : &whole_;
    tensor.strides = one.step ? &unit_stride : &no_stride;
    tensor.numel = *tensor.sizes;
    tensor.storage = nullptr;
    tensor.offset = one.scratch >= 0 ? 0 : static_cast<uint64_t>(one.offset);
  }
  return static_cast<int>(tensors_.size()) - 1;
}

int GroupGraph::read(const TiledTensor& one, size_t place) {
  if (one.buffer < 0) return add(one);
  for (const Known& known : known_) {
    if (known.buffer != one.buffer) continue;
    if (known.offset == one.offset && known.step == one.step && known.dtype == one.tensor->dtype &&
        known.expansion == one.expansion)
      return known.number;
    is_valid_ = is_valid_ && !known.is_made;
  }
  const int number = add(one);
  known_.push_back({one.buffer, one.expansion, one.offset, one.step, one.tensor->dtype, number, place, false, false});
  inputs_.push_back(number);
  input_places.push_back(place);
  return number;
}

int GroupGraph::write(const TiledTensor& one, size_t place, bool is_inner) {
  std::erase_if(known_, [&](const Known& known) { return known.buffer == one.buffer; });
  const int number = add(one);
  known_.push_back({one.buffer, one.expansion, one.offset, one.step, one.tensor->dtype, number, place, true, is_inner});
  return number;
}

bool GroupGraph::is_used_outside(const Tiling& tiling, int buffer, int begin, int end) const {
  for (int k = 0; k < static_cast<int>(tiling.calls.size()); ++k) {
    if (k >= begin && k < end) continue;
    if (std::ranges::count(tiling.calls[static_cast<size_t>(k)].tensors, buffer, &TiledTensor::buffer) > 0) return true;
  }
  return false;
}

// Backends get their compilers only when they are needed: loading one takes time.
void prepare_compilers() {
  static bool is_done = false;
  if (is_done) return;
  is_done = true;
  const Ref<> module = owned(PyImport_ImportModule("candelabra.settings"));
  owned(PyObject_CallMethod(module.get(), "prepare_compilers", nullptr));
}

// The graph as another process has saved it, or compiled now and saved; null where the backend
// cannot.
std::shared_ptr<void> compiled_graph(const cb_graph& graph, const cb_compile& service, const cb_backend* backend) {
  const bool is_saved = service.size >= sizeof(cb_compile) && service.save && service.load;
  const std::string name = is_saved ? file_name_of(graph) : "";
  void* compiled = nullptr;
  if (is_saved) {
    const std::vector<std::byte> saved = read_saved(backend, name);
    if (!saved.empty() && service.load(&graph, saved.data(), saved.size(), &compiled) == CB_OK && compiled)
      return {compiled, service.destroy};
  }
  compiled = nullptr;
  if (service.compile(&graph, &compiled) != CB_OK || !compiled) return nullptr;
  const std::shared_ptr<void> owner(compiled, service.destroy);
  uint64_t bytes = 0;
  if (!is_saved || service.save(compiled, nullptr, 0, &bytes) != CB_OK) return owner;
  std::vector<std::byte> saved(bytes);
  if (service.save(compiled, saved.data(), saved.size(), &bytes) == CB_OK && bytes == saved.size())
    write_saved(backend, name, saved);
  return owner;
}

std::vector<uint8_t> claims(const GroupGraph& group, const cb_compile& service) {
  std::vector<uint8_t> claimed(static_cast<size_t>(group.graph().node_count));
  if (group.is_valid() && service.claim(&group.graph(), claimed.data()) == CB_OK) return claimed;
  return std::vector<uint8_t>(claimed.size());
}

}  // namespace

bool compiles_graphs(const cb_compile& service) {
  return service.size >= offsetof(cb_compile, save) && service.claim && service.compile && service.execute &&
         service.destroy;
}

bool is_claimed(const Instruction& instruction, const cb_compile& service, bool is_exact) {
  if (!compiles_graphs(service)) return false;
  prepare_compilers();
  Tiling alone;
  alone.numel = alone.length = instruction.outputs[0].numel;
  alone.calls.push_back({&instruction, tiled_tensors(instruction)});
  return claims(GroupGraph(alone, 0, 1, is_exact), service).front() != 0;
}

void claim_runs(Tiling& tiling, const cb_compile& service, bool is_exact) {
  if (!compiles_graphs(service)) return;
  prepare_compilers();
  const int count = static_cast<int>(tiling.calls.size());
  const std::vector<uint8_t> claimed = claims(GroupGraph(tiling, 0, count, is_exact), service);
  for (int begin = 0, end = 0; begin < count; begin = end + 1) {
    for (end = begin; end < count && claimed[static_cast<size_t>(end)];) ++end;
    if (end < begin + 2) continue;
    CompiledRun& run = tiling.runs.emplace_back();
    run.begin = begin;
    run.end = end;
  }
}

void compile_runs(Tiling& tiling, const cb_compile& service, bool is_exact) {
  tiling.is_compiled = true;
  std::erase_if(tiling.runs, [&](CompiledRun& run) {
    GroupGraph group(tiling, run.begin, run.end, is_exact);
    const Device device = tiling.calls[static_cast<size_t>(run.begin)].instruction->device;
    if (group.is_valid()) run.compiled = compiled_graph(group.graph(), service, device_type(device).table);
    if (!run.compiled) return true;
    run.inputs = std::move(group.input_places);
    run.outputs = std::move(group.output_places);
    return false;
  });
  const bool is_whole = tiling.runs.size() == 1 && tiling.runs.front().begin == 0 &&
                        tiling.runs.front().end == static_cast<int>(tiling.calls.size());
  if (!is_whole || !tiling.expansions.empty()) return;
  // One loop reads and writes each tensor once: its tiles need not fit a cache. The scratch memory,
  // which is for shorter tiles, has no use then.
  tiling.length = longest_tile;
}

}  // namespace candelabra
