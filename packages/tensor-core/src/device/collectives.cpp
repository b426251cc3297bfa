#define PY_SSIZE_T_CLEAN  // lengths of bytes are Py_ssize_t
#include "device/collectives.hpp"

#include <cstring>
#include <string_view>

#include "device/streams.hpp"
#include "interop/interop.hpp"
#include "memory/storage.hpp"

namespace candelabra {

namespace {

const cb_collectives& collectives_of(const DeviceType& type) {
  const cb_collectives* table = accelerator_of(type).collectives;
  check(table && table->create && table->unique_id, PyExc_NotImplementedError, "the device type '", type.name, "' (",
        type.distribution, ") has no collectives");
  return *table;
}

// Calls a function of the table without the GIL, because it may wait for other processes.
template <typename Function, typename... Arguments>
void call(const DeviceType& type, const char* what, Function function, Arguments... arguments) {
  check(function, PyExc_NotImplementedError, "the device type '", type.name, "' (", type.distribution, ") has no ",
        what);
  int32_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = function(arguments...);
  Py_END_ALLOW_THREADS;
  if (status != CB_OK) [[unlikely]]
    raise_backend_failure(type, what, status);
}

void* address_of(PyObject* object) {
  void* address = PyLong_AsVoidPtr(object);
  if (!address && PyErr_Occurred()) throw PythonError();
  return address;
}

cb_communicator_options options_of(long long timeout_ms, const char* name) {
  cb_communicator_options options{};
  options.size = sizeof options;
  options.timeout_ms = timeout_ms;
  options.name = name;
  return options;
}

// Parses (device, communicator) and returns f(type, table, communicator).
template <typename F>
PyObject* with_communicator(PyObject* arguments, const char* format, F&& f) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *address;
    if (!PyArg_ParseTuple(arguments, format, &object, &address)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    return f(type, collectives_of(type), address_of(address));
  });
}

PyObject* version(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const DeviceType& type = device_type(device_from_object(argument));
    const cb_collectives& table = collectives_of(type);
    int32_t result = 0;
    call(type, "version", table.version, &result);
    return Py_BuildValue("si", table.name, result);
  });
}

PyObject* unique_id(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const DeviceType& type = device_type(device_from_object(argument));
    uint8_t id[128];
    call(type, "unique_id", collectives_of(type).unique_id, id);
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(id), sizeof id);
  });
}

PyObject* create(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    const char *id, *name;
    Py_ssize_t length;
    int rank, ranks;
    long long timeout_ms;
    if (!PyArg_ParseTuple(arguments, "Oy#iiLz:communicator_create", &object, &id, &length, &rank, &ranks, &timeout_ms,
                          &name))
      return nullptr;
    check(length == 128, PyExc_ValueError, "a communicator's id has 128 bytes, not ", length);
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    const cb_communicator_options options = options_of(timeout_ms, name);
    void* communicator = nullptr;
    call(type, "create", collectives_of(type).create, device.index, reinterpret_cast<const uint8_t*>(id), rank, ranks,
         &options, &communicator);
    return PyLong_FromVoidPtr(communicator);
  });
}

PyObject* split(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *address;
    int color, key;
    long long timeout_ms;
    const char* name;
    if (!PyArg_ParseTuple(arguments, "OOiiLz:communicator_split", &object, &address, &color, &key, &timeout_ms, &name))
      return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const cb_communicator_options options = options_of(timeout_ms, name);
    void* child = nullptr;
    call(type, "split", collectives_of(type).split, address_of(address), color, key, &options, &child);
    if (!child) Py_RETURN_NONE;
    return PyLong_FromVoidPtr(child);
  });
}

PyObject* rank(PyObject*, PyObject* arguments) {
  return with_communicator(arguments, "OO:communicator_rank",
                           [](const DeviceType& type, const cb_collectives& table, void* communicator) {
                             int32_t rank = 0, ranks = 0;
                             call(type, "rank", table.rank, communicator, &rank, &ranks);
                             return Py_BuildValue("ii", rank, ranks);
                           });
}
PyObject* destroy(PyObject*, PyObject* arguments) {
  return with_communicator(arguments, "OO:communicator_destroy",
                           [](const DeviceType& type, const cb_collectives& table, void* communicator) {
                             call(type, "destroy", table.destroy, communicator);
                             return Py_NewRef(Py_None);
                           });
}
PyObject* abort_communicator(PyObject*, PyObject* arguments) {
  return with_communicator(arguments, "OO:communicator_abort",
                           [](const DeviceType& type, const cb_collectives& table, void* communicator) {
                             call(type, "abort", table.abort, communicator);
                             return Py_NewRef(Py_None);
                           });
}
PyObject* query(PyObject*, PyObject* arguments) {
  return with_communicator(arguments, "OO:communicator_query",
                           [](const DeviceType& type, const cb_collectives& table, void* communicator) {
                             call(type, "query", table.query, communicator);
                             return Py_NewRef(Py_None);
                           });
}

PyObject* wait(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *address;
    long long timeout_ms;
    if (!PyArg_ParseTuple(arguments, "OOL:communicator_wait", &object, &address, &timeout_ms)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    call(type, "wait", collectives_of(type).wait, address_of(address), static_cast<int64_t>(timeout_ms));
    Py_RETURN_NONE;
  });
}

// Marks a tensor as modified by a collective, which autograd cannot differentiate.
void mark_written(const char* kind, TensorObject* tensor) {
  check(!(grad_mode.enabled && requires_grad(tensor)), PyExc_RuntimeError, kind,
        ": a tensor that requires grad cannot be written to by a collective; use candelabra.no_grad() or "
        "tensor.detach()");
  ++tensor->storage->version;
}

// Arguments: (device, communicator, kind, send, receive, ranks, reduction, peer). The tensor that a
// collective does not use is None.
PyObject* run(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *address, *send_object, *receive_object;
    const char* kind;
    int ranks, reduction, peer;
    if (!PyArg_ParseTuple(arguments, "OOsOOiii:communicator_run", &object, &address, &kind, &send_object,
                          &receive_object, &ranks, &reduction, &peer))
      return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    const cb_collectives& table = collectives_of(type);
    void* const communicator = address_of(address);
    const auto tensor_of = [&](PyObject* given, const char* which) -> TensorObject* {
      if (given == Py_None) return nullptr;
      check(is_tensor(given), PyExc_TypeError, kind, "(): ", which, " must be a Tensor, not ", Py_TYPE(given)->tp_name);
      TensorObject* tensor = as_tensor(given);
      check(tensor->device() == device, PyExc_ValueError, kind, "(): ", which, " must be on the communicator's device");
      check(tensor->contiguous, PyExc_ValueError, kind, "(): ", which, " must be contiguous");
      return tensor;
    };
    TensorObject *send = tensor_of(send_object, "what is sent"),
                 *receive = tensor_of(receive_object, "what is received");
    check(send || receive, PyExc_ValueError, kind, "(): there is no tensor");
    const Dtype dtype = (send ? send : receive)->dtype;
    check(!send || !receive || send->dtype == receive->dtype, PyExc_ValueError, kind,
          "(): what is sent and what is received must be of one dtype");
    const std::string_view name(kind);
    const auto elements = [&](int64_t sent, int64_t received) {
      check(send && receive && send->numel * sent == receive->numel * received, PyExc_ValueError, kind, "(): ", ranks,
            " ranks send ", send ? send->numel : 0, " elements each, for which ", receive ? receive->numel : 0,
            " are not the right number");
    };
    const auto number = static_cast<int32_t>(dtype);
    void* const stream = current_stream(device);
    const void* const from = send ? send->data() : nullptr;
    void* const to = receive ? receive->data() : nullptr;
    if (name == "all_reduce") {
      elements(1, 1);
      mark_written(kind, receive);
      call(type, kind, table.all_reduce, communicator, from, to, static_cast<uint64_t>(send->numel), number, reduction,
           stream);
    } else if (name == "broadcast") {
      elements(1, 1);
      mark_written(kind, receive);
      call(type, kind, table.broadcast, communicator, from, to, static_cast<uint64_t>(send->numel), number, peer,
           stream);
    } else if (name == "reduce") {
      elements(1, 1);
      mark_written(kind, receive);
      call(type, kind, table.reduce, communicator, from, to, static_cast<uint64_t>(send->numel), number, reduction,
           peer, stream);
    } else if (name == "all_gather") {
      elements(ranks, 1);
      mark_written(kind, receive);
      call(type, kind, table.all_gather, communicator, from, to, static_cast<uint64_t>(send->numel), number, stream);
    } else if (name == "reduce_scatter") {
      elements(1, ranks);
      mark_written(kind, receive);
      call(type, kind, table.reduce_scatter, communicator, from, to, static_cast<uint64_t>(receive->numel), number,
           reduction, stream);
    } else if (name == "all_to_all") {
      elements(1, 1);
      check(send->numel % ranks == 0, PyExc_ValueError, kind, "(): ", send->numel, " elements are not ", ranks,
            " parts of one size");
      mark_written(kind, receive);
      call(type, kind, table.all_to_all, communicator, from, to, static_cast<uint64_t>(send->numel / ranks), number,
           stream);
    } else if (name == "send") {
      check(send, PyExc_ValueError, "send(): there is no tensor");
      call(type, kind, table.send, communicator, from, static_cast<uint64_t>(send->numel), number, peer, stream);
    } else {
      check(name == "receive", PyExc_ValueError, "communicator_run(): there is no collective ", kind);
      check(receive, PyExc_ValueError, "receive(): there is no tensor");
      mark_written(kind, receive);
      call(type, kind, table.receive, communicator, to, static_cast<uint64_t>(receive->numel), number, peer, stream);
    }
    Py_RETURN_NONE;
  });
}

PyObject* group(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int begins;
    if (!PyArg_ParseTuple(arguments, "Op:communicator_group", &object, &begins)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const cb_collectives& table = collectives_of(type);
    call(type, begins ? "group_begin" : "group_end", begins ? table.group_begin : table.group_end);
    Py_RETURN_NONE;
  });
}

}  // namespace

PyMethodDef collective_functions[] = {
    {"communicator_version", version, METH_O, "The name and the version of a device's collectives library."},
    {"communicator_id", unique_id, METH_O, "Create the id of a new communicator: 128 bytes."},
    {"communicator_create", create, METH_VARARGS,
     "Create a communicator; all ranks must call this. Returns its address."},
    {"communicator_split", split, METH_VARARGS, "Split a communicator; returns the new one, or None."},
    {"communicator_rank", rank, METH_VARARGS, "This process's rank and the number of ranks."},
    {"communicator_destroy", destroy, METH_VARARGS, "Wait for queued work and destroy a communicator."},
    {"communicator_abort", abort_communicator, METH_VARARGS, "Abort the collectives of a communicator."},
    {"communicator_query", query, METH_VARARGS, "Raise if a communicator has failed."},
    {"communicator_wait", wait, METH_VARARGS, "Wait for all work queued on a communicator."},
    {"communicator_run", run, METH_VARARGS, "Queue a collective on the current stream."},
    {"communicator_group", group, METH_VARARGS, "Begin or end a group of collectives."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
