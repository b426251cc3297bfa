// Python functions for a device's graphs and for their memory pools.
#define PY_SSIZE_T_CLEAN  // lengths of bytes are Py_ssize_t
#include <Python.h>

#include "device/accelerator_calls.hpp"
#include "device/random.hpp"
#include "device/streams.hpp"
#include "interop/interop.hpp"

namespace candelabra {

namespace {

void require_graphs(const DeviceType& type) {
  const cb_accelerator& table = accelerator_of(type);
  require(type.has(CB_CAP_GRAPHS) && table.graph_begin && table.graph_end && table.graph_launch &&
              table.graph_destroy && table.pool_create && table.pool_retain && table.pool_release,
          type, "graphs");
}

PyObject* pool_create(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    require_graphs(type);
    void* pool = nullptr;
    succeed(type, "pool_create", accelerator_of(type).pool_create(device.index, &pool));
    return PyLong_FromVoidPtr(pool);
  });
}
PyObject* pool_retain(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:pool_retain", [](Device device, const DeviceType& type, void* pool) {
    require_graphs(type);
    succeed(type, "pool_retain", accelerator_of(type).pool_retain(device.index, pool));
    return Py_NewRef(Py_None);
  });
}
PyObject* pool_release(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:pool_release", [](Device device, const DeviceType& type, void* pool) {
    require_graphs(type);
    succeed(type, "pool_release", accelerator_of(type).pool_release(device.index, pool));
    return Py_NewRef(Py_None);
  });
}

PyObject* pool_begin(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:pool_begin", [](Device device, const DeviceType& type, void* pool) {
    const auto function = accelerator_of(type).pool_begin;
    require(function, type, "pools of memory");
    succeed(type, "pool_begin", function(device.index, pool));
    return Py_NewRef(Py_None);
  });
}
PyObject* pool_end(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:pool_end", [](Device device, const DeviceType& type, void* pool) {
    const auto function = accelerator_of(type).pool_end;
    require(function, type, "pools of memory");
    succeed(type, "pool_end", function(device.index, pool));
    return Py_NewRef(Py_None);
  });
}

PyObject* graph_begin(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *stream, *pool;
    int mode;
    if (!PyArg_ParseTuple(arguments, "OOOi:graph_begin", &object, &stream, &pool, &mode)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require_graphs(type);
    const uint64_t offset = generator_state(nullptr, device).offset;
    succeed(type, "graph_begin",
            accelerator_of(type).graph_begin(device.index, address_of(stream), address_of(pool), mode, offset));
    return PyLong_FromUnsignedLongLong(offset);
  });
}

// Returns the graph and the number of random blocks that a replay consumes. The capture itself
// consumes none, so the generator's offset is restored.
PyObject* graph_end(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *stream;
    unsigned long long offset;
    if (!PyArg_ParseTuple(arguments, "OOK:graph_end", &object, &stream, &offset)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require_graphs(type);
    GeneratorState& state = generator_state(nullptr, device);
    const uint64_t consumed = state.offset - offset;
    state.offset = offset;
    void* graph = nullptr;
    succeed(type, "graph_end", accelerator_of(type).graph_end(device.index, address_of(stream), &graph));
    const Ref<> address = owned(PyLong_FromVoidPtr(graph));
    return Py_BuildValue("OK", address.get(), static_cast<unsigned long long>(consumed));
  });
}

PyObject* graph_launch(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *graph;
    unsigned long long consumed;
    if (!PyArg_ParseTuple(arguments, "OOK:graph_launch", &object, &graph, &consumed)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require_graphs(type);
    GeneratorState& state = generator_state(nullptr, device);
    succeed(type, "graph_launch",
            accelerator_of(type).graph_launch(device.index, address_of(graph), current_stream(device), state.seed,
                                              state.offset));
    state.offset += consumed;
    Py_RETURN_NONE;
  });
}

PyObject* graph_write_dot(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *graph;
    const char* path;
    if (!PyArg_ParseTuple(arguments, "OOs:graph_write_dot", &object, &graph, &path)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    const auto function = accelerator_of(type).graph_write_dot;
    require(function, type, "description of its graphs");
    succeed(type, "graph_write_dot", function(device.index, address_of(graph), path));
    Py_RETURN_NONE;
  });
}

PyObject* graph_destroy(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:graph_destroy", [](Device device, const DeviceType& type, void* graph) {
    if (graph && accelerator_of(type).graph_destroy) accelerator_of(type).graph_destroy(device.index, graph);
    return Py_NewRef(Py_None);
  });
}

}  // namespace

PyMethodDef accelerator_graph_functions[] = {
    {"pool_create", pool_create, METH_O, "Create a memory pool for graphs; returns its address."},
    {"pool_retain", pool_retain, METH_VARARGS, "Add a reference to a memory pool."},
    {"pool_release", pool_release, METH_VARARGS, "Drop a reference to a memory pool."},
    {"pool_begin", pool_begin, METH_VARARGS, "Begin to take this thread's allocations on the device from the pool."},
    {"pool_end", pool_end, METH_VARARGS, "End what pool_begin began."},
    {"graph_begin", graph_begin, METH_VARARGS, "Begin to capture a stream; returns the generator's offset."},
    {"graph_end", graph_end, METH_VARARGS,
     "End a capture; returns the graph and the number of random blocks that a replay consumes."},
    {"graph_launch", graph_launch, METH_VARARGS, "Replay a graph on the current stream."},
    {"graph_write_dot", graph_write_dot, METH_VARARGS, "Write a graph to a file in Graphviz's DOT language."},
    {"graph_destroy", graph_destroy, METH_VARARGS, "Destroy a graph."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
