#include "vendor/cudnn/cudnn.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda::cudnn {
namespace {

struct Functions {
  Library library{"cuDNN", "libcudnn.so.9", "nvidia-cudnn-cu13"};
  Function<decltype(cudnnGetVersion)> version{library, "cudnnGetVersion"};
  Function<decltype(cudnnGetErrorString)> error_string{library, "cudnnGetErrorString"};
  Function<decltype(cudnnCreate)> create{library, "cudnnCreate"};
  Function<decltype(cudnnDestroy)> destroy{library, "cudnnDestroy"};
  Function<decltype(cudnnSetStream)> set_stream{library, "cudnnSetStream"};
  Function<decltype(cudnnBackendCreateDescriptor)> create_descriptor{library, "cudnnBackendCreateDescriptor"};
  Function<decltype(cudnnBackendDestroyDescriptor)> destroy_descriptor{library, "cudnnBackendDestroyDescriptor"};
  Function<decltype(cudnnBackendSetAttribute)> set_attribute{library, "cudnnBackendSetAttribute"};
  Function<decltype(cudnnBackendGetAttribute)> get_attribute{library, "cudnnBackendGetAttribute"};
  Function<decltype(cudnnBackendFinalize)> finalize{library, "cudnnBackendFinalize"};
  Function<decltype(cudnnBackendExecute)> execute{library, "cudnnBackendExecute"};
};
const Functions& functions() {
  static const Functions table;
  return table;
}

// A handle has one stream, so each thread has its own handle.
struct Handle {
  cudnnHandle_t raw = nullptr;
  Handle() { check(functions().create(&raw), "cudnnCreate"); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    // At the end of the process the driver may be gone before the thread.
    if (cudaFree(nullptr) == cudaSuccess) functions().destroy(raw);
  }
};

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
Event make_event() {
  cudaEvent_t raw = nullptr;
  cuda::check(cudaEventCreate(&raw), "timing cuDNN's plans");
  return Event(raw);
}

bool among(std::span<const cudnnBackendNumericalNote_t> notes, cudnnBackendNumericalNote_t wanted) {
  return std::find(notes.begin(), notes.end(), wanted) != notes.end();
}

bool allowed(const Descriptor& engine, const Constraints& constraints) {
  std::array<cudnnBackendNumericalNote_t, 64> room{};
  const int64_t count =
      engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, room.size(), room.data());
  const std::span<const cudnnBackendNumericalNote_t> notes(room.data(), static_cast<size_t>(count));
  if (constraints.deterministic && among(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (constraints.full_float32 &&
      (among(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || among(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)))
    return false;
  return !among(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
}

Descriptor device_properties(const char* text) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<int64_t>(std::char_traits<char>::length(text)), text);
  properties.finalize();
  return properties;
}

// The engine configurations that cuDNN's heuristics recommend, best first.
std::vector<Descriptor> configurations(const Descriptor& graph, const Descriptor& properties,
                                       cudnnBackendHeurMode_t mode) {
  std::vector<Descriptor> result;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set_choice(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (properties) heuristics.set_descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
  // The heuristics have no recommendation in this mode.
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return result;
  const int64_t count = heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) raw.push_back(result.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  const int64_t found =
      heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data());
  result.resize(static_cast<size_t>(std::min(count, found)));
  return result;
}

}  // namespace

const Library& library() {
  return functions().library;
}

void check(cudnnStatus_t status, const char* function) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw failure(CB_OUT_OF_MEMORY, "cuDNN: %s: out of memory", function);
  raise_library("cuDNN", function, static_cast<int>(status), functions().error_string(status));
}

bool available() {
  static const bool found = version() != 0;  // searched for once
  return found;
}

int64_t version() {
  try {
    return static_cast<int64_t>(functions().version());
  } catch (const Failure&) {
    return 0;  // not installed, which is what the caller asks
  }
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check(functions().create_descriptor(type, &raw), "cudnnBackendCreateDescriptor");
  raw_.reset(raw);
}

void Descriptor::Destroy::operator()(void* raw) const {
  functions().destroy_descriptor(raw);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check(functions().set_attribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
}

int64_t Descriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                         void* values) const {
  int64_t count = 0;
  check(functions().get_attribute(get(), name, type, most, &count, values), "cudnnBackendGetAttribute");
  return count;
}

cudnnStatus_t Descriptor::try_finalize() {
  return functions().finalize(get());
}

void Descriptor::finalize() {
  check(try_finalize(), "cudnnBackendFinalize");
}

Descriptor tensor(int64_t id, cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  int64_t alignment, Storage storage) {
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set_integer(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  result.set_choice(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  result.set_integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  result.set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  result.set_integers(CUDNN_ATTR_TENSOR_STRIDES, strides);
  if (storage != Storage::Device)
    result.set_choice(storage == Storage::Virtual ? CUDNN_ATTR_TENSOR_IS_VIRTUAL : CUDNN_ATTR_TENSOR_IS_BY_VALUE,
                      CUDNN_TYPE_BOOLEAN, true);
  result.finalize();
  return result;
}

std::vector<Plan> find_plans(const Target& target, std::span<const Descriptor> operations,
                             const Constraints& constraints, size_t most) {
  std::vector<Plan> result;
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  const cudnnStatus_t status = graph.try_finalize();
  if (is_unsupported(status)) return result;
  check(status, "cudnnBackendFinalize");
  const Descriptor properties = target.handle ? Descriptor() : device_properties(target.properties);
  // The plan with the smallest workspace, for the case that none keeps to the limit.
  Plan frugal;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& configuration : configurations(graph, properties, mode)) {
      if (result.size() >= most) return result;
      const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      cudnnBackendDescriptor_t place = engine.get();
      configuration.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &place);
      if (!allowed(engine, constraints)) continue;
      Plan plan{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0, {}};
      if (target.handle) plan.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
      if (properties) plan.plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
      plan.plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      // An engine reports only here that it does not support the graph; the next one may.
      if (plan.plan.try_finalize() != CUDNN_STATUS_SUCCESS) continue;
      plan.plan.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &plan.workspace);
      int64_t number = 0;
      engine.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
      plan.name = "engine " + std::to_string(number);
      if (plan.workspace <= constraints.workspace)
        result.push_back(std::move(plan));
      else if (!frugal.plan || plan.workspace < frugal.workspace)
        frugal = std::move(plan);
    }
  }
  if (result.empty() && frugal.plan) result.push_back(std::move(frugal));
  return result;
}

Target target_of(const Call& call) {
  thread_local std::map<int, Handle> handles;
  const cudnnHandle_t handle = handles[call.device()].raw;
  check(functions().set_stream(handle, call.stream()), "cudnnSetStream");
  return {handle, nullptr};
}

void execute(const Call& call, const Target& target, const Plan& plan, Arguments arguments) {
  const Workspace workspace(call, static_cast<size_t>(plan.workspace));
  std::vector<int64_t> ids;
  std::vector<const void*> places;
  for (const auto& [id, place] : arguments) {
    ids.push_back(id);
    places.push_back(place);
  }
  const auto count = static_cast<int64_t>(ids.size());
  void* room = workspace.data();
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
  pack.finalize();
  check(functions().execute(target.handle, plan.plan.get(), pack.get()), "cudnnBackendExecute");
}

size_t fastest(const Call& call, const Target& target, std::span<const Plan> plans, Arguments arguments) {
  constexpr int runs = 5;
  size_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < plans.size(); ++i) {
    const Event start = make_event(), end = make_event();
    try {
      execute(call, target, plans[i], arguments);  // the first run loads code
      cuda::check(cudaEventRecord(start.get(), call.stream()), "timing cuDNN's plans");
      for (int run = 0; run < runs; ++run) execute(call, target, plans[i], arguments);
      cuda::check(cudaEventRecord(end.get(), call.stream()), "timing cuDNN's plans");
      cuda::check(cudaEventSynchronize(end.get()), "timing cuDNN's plans");
    } catch (const Failure& error) {
      // A plan whose workspace cannot be allocated is skipped, unless it is the last one.
      if (error.status() != CB_OUT_OF_MEMORY || (i + 1 == plans.size() && std::isinf(least))) throw;
      continue;
    }
    float time = 0;
    cuda::check(cudaEventElapsedTime(&time, start.get(), end.get()), "timing cuDNN's plans");
    if (time < least) least = time, best = i;
  }
  return best;
}

cudnnDataType_t data_type(int32_t dtype) {
  switch (dtype) {
    case CB_FLOAT16:
      return CUDNN_DATA_HALF;
    case CB_BFLOAT16:
      return CUDNN_DATA_BFLOAT16;
    case CB_FLOAT32:
      return CUDNN_DATA_FLOAT;
    case CB_FLOAT64:
      return CUDNN_DATA_DOUBLE;
    case CB_BOOL:
      return CUDNN_DATA_BOOLEAN;
    default:
      throw not_implemented();
  }
}

}  // namespace candelabra::cuda::cudnn
