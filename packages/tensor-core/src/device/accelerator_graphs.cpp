// Python functions for a device's graphs and for their memory pools.
#include "device/accelerator_calls.hpp"
#include "device/random.hpp"

namespace candelabra {

namespace {

void require_graphs(const DeviceType& type) {
  const cb_accelerator& table = accelerator_of(type);
  require(type.has(CB_CAP_GRAPHS) && table.graph_begin && table.graph_end && table.graph_launch &&
              table.graph_destroy && table.pool_create && table.pool_retain && table.pool_release,
          type, "graphs");
}

Address pool_create(Device device) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  void* pool = nullptr;
  succeed(type, "pool_create", accelerator_of(type).pool_create(device.index, &pool));
  return {pool};
}

void pool_retain(Device device, Address pool) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  succeed(type, "pool_retain", accelerator_of(type).pool_retain(device.index, pool.value));
}

void pool_release(Device device, Address pool) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  succeed(type, "pool_release", accelerator_of(type).pool_release(device.index, pool.value));
}

void pool_begin(Device device, Address pool) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).pool_begin;
  require(function, type, "pools of memory");
  succeed(type, "pool_begin", function(device.index, pool.value));
}

void pool_end(Device device, Address pool) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).pool_end;
  require(function, type, "pools of memory");
  succeed(type, "pool_end", function(device.index, pool.value));
}

uint64_t graph_begin(Device device, Address stream, Address pool, IntArgument mode) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  const uint64_t offset = generator_state(nullptr, device).offset;
  succeed(type, "graph_begin", accelerator_of(type).graph_begin(device.index, stream.value, pool.value, mode, offset));
  return offset;
}

// The capture itself consumes no random blocks, so the generator's offset is restored.
py::tuple graph_end(Device device, Address stream, Uint64Argument offset) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  GeneratorState& state = generator_state(nullptr, device);
  const uint64_t consumed = state.offset - offset;
  state.offset = offset;
  Address graph;
  succeed(type, "graph_end", accelerator_of(type).graph_end(device.index, stream.value, &graph.value));
  return py::make_tuple(graph, consumed);
}

void graph_launch(Device device, Address graph, Uint64Argument consumed) {
  const DeviceType& type = device_type(device);
  require_graphs(type);
  GeneratorState& state = generator_state(nullptr, device);
  succeed(
      type, "graph_launch",
      accelerator_of(type).graph_launch(device.index, graph.value, current_stream(device), state.seed, state.offset));
  state.offset += consumed;
}

void graph_write_dot(Device device, Address graph, TextArgument path) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).graph_write_dot;
  require(function, type, "description of its graphs");
  succeed(type, "graph_write_dot", function(device.index, graph.value, path));
}

void graph_destroy(Device device, Address graph) {
  const cb_accelerator& table = accelerator_of(device_type(device));
  if (graph.value && table.graph_destroy) table.graph_destroy(device.index, graph.value);
}

}  // namespace

void register_accelerator_graphs(py::module_& module) {
  using namespace py::literals;
  module.def("pool_create", pool_create, "device"_a, "Create a memory pool for graphs; returns its address.");
  module.def("pool_retain", pool_retain, "device"_a, "pool"_a, "Add a reference to a memory pool.");
  module.def("pool_release", pool_release, "device"_a, "pool"_a, "Drop a reference to a memory pool.");
  module.def("pool_begin", pool_begin, "device"_a, "pool"_a,
             "Begin to take this thread's allocations on the device from the pool.");
  module.def("pool_end", pool_end, "device"_a, "pool"_a, "End what pool_begin began.");
  module.def("graph_begin", graph_begin, "device"_a, "stream"_a, "pool"_a, "mode"_a,
             "Begin to capture a stream; returns the generator's offset.");
  module.def("graph_end", graph_end, "device"_a, "stream"_a, "offset"_a,
             "End a capture; returns the graph and the number of random blocks that a replay consumes.");
  module.def("graph_launch", graph_launch, "device"_a, "graph"_a, "consumed"_a,
             "Replay a graph on the current stream.");
  module.def("graph_write_dot", graph_write_dot, "device"_a, "graph"_a, "path"_a,
             "Write a graph to a file in Graphviz's DOT language.");
  module.def("graph_destroy", graph_destroy, "device"_a, "graph"_a, "Destroy a graph.");
}

}  // namespace candelabra
