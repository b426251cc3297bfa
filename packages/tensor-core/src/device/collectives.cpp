// Python functions for collectives, on which candelabra.communication is built.
#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "device/accelerator_calls.hpp"
#include "device/backend_table.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

// Libraries of collectives other than those of backends, by the device type that they are for.
// Guarded by the GIL. Few device types have one.
std::vector<std::pair<const DeviceType*, const cb_collectives_library*>> libraries;

const cb_collectives_library* library_of(const DeviceType& type) {
  for (const auto& [each, library] : libraries) {
    if (each == &type) return library;
  }
  return nullptr;
}

const cb_collectives& collectives_of(const DeviceType& type) {
  const cb_collectives_library* library = library_of(type);
  const cb_collectives* table = library ? library->collectives : accelerator_of(type).collectives;
  require(table && table->create && table->unique_id, type, "collectives");
  return *table;
}

// For libraries of collectives: the thread has called them without the GIL.
int32_t is_interrupted() {
  const py::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() < 0;
}
constexpr cb_collectives_host collectives_host = {sizeof(cb_collectives_host), is_interrupted};

[[noreturn]] void raise_failure(const DeviceType& type, const char* what, int32_t status) {
  if (status == CB_CANCELLED && PyErr_Occurred()) throw PythonError();
  const cb_collectives_library* library = library_of(type);
  if (!library) raise_backend_failure(type, what, status);
  const char* message = library->last_error();
  raise(exception_of_status(status), message && *message ? message : text(what, " failed with status ", status));
}

// Calls a function of the table without the GIL, because it may wait for other processes.
template <typename Function, typename... Arguments>
void call(const DeviceType& type, const char* what, Function function, Arguments... arguments) {
  require(function, type, what);
  const int32_t status = unlocked([&] { return function(arguments...); });
  if (status != CB_OK) [[unlikely]]
    raise_failure(type, what, status);
}

void load_library(TextArgument device_type_name, TextArgument path) {
  const DeviceType& type = device_type(device_from_text(device_type_name.value));
  check(!accelerator_of(type).collectives, PyExc_ValueError, "the backend of the device type '", type.name,
        "' has collectives of its own");
  check(!library_of(type), PyExc_RuntimeError, "the collectives of the device type '", type.name,
        "' have been loaded already");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    raise(PyExc_OSError, "the library of collectives could not be opened: ", reason ? reason : path.value);
  }
  auto entry = reinterpret_cast<cb_collectives_entry>(dlsym(library, "candelabra_collectives"));
  check(entry, PyExc_OSError, path.value, " exports no function candelabra_collectives");
  const cb_collectives_library* made = entry(&collectives_host);
  check_collectives_library(path.value, made);
  libraries.emplace_back(&type, made);
}

bool has_collectives(Device device) {
  const DeviceType& type = device_type(device);
  return library_of(type) || type.has(CB_CAP_COLLECTIVES);
}

cb_communicator_options options_of(int64_t timeout_ms, const char* name) {
  cb_communicator_options options{};
  options.size = sizeof options;
  options.timeout_ms = timeout_ms;
  options.name = name;
  return options;
}

py::tuple version(Device device) {
  const DeviceType& type = device_type(device);
  const cb_collectives& table = collectives_of(type);
  int32_t result = 0;
  call(type, "version", table.version, &result);
  return py::make_tuple(table.name, result);
}

py::bytes unique_id(Device device) {
  const DeviceType& type = device_type(device);
  uint8_t id[128];
  call(type, "unique_id", collectives_of(type).unique_id, id);
  return {reinterpret_cast<const char*>(id), sizeof id};
}

Address create(Device device, const py::bytes& id, IntArgument rank, IntArgument ranks, Int64Argument timeout_ms,
               OptionalTextArgument name) {
  const auto bytes = static_cast<std::string_view>(id);
  check(bytes.size() == 128, PyExc_ValueError, "a communicator's id has 128 bytes, not ", bytes.size());
  const DeviceType& type = device_type(device);
  const cb_communicator_options options = options_of(timeout_ms, name);
  Address communicator;
  call(type, "create", collectives_of(type).create, device.index, reinterpret_cast<const uint8_t*>(bytes.data()),
       rank.value, ranks.value, &options, &communicator.value);
  return communicator;
}

// Returns the new communicator, or None where this rank is in none.
py::object split(Device device, Address communicator, IntArgument color, IntArgument key, Int64Argument timeout_ms,
                 OptionalTextArgument name) {
  const DeviceType& type = device_type(device);
  const cb_communicator_options options = options_of(timeout_ms, name);
  Address child;
  call(type, "split", collectives_of(type).split, communicator.value, color.value, key.value, &options, &child.value);
  return child.value ? py::cast(child) : py::none();
}

py::tuple rank(Device device, Address communicator) {
  const DeviceType& type = device_type(device);
  int32_t rank = 0, ranks = 0;
  call(type, "rank", collectives_of(type).rank, communicator.value, &rank, &ranks);
  return py::make_tuple(rank, ranks);
}

void destroy(Device device, Address communicator) {
  const DeviceType& type = device_type(device);
  call(type, "destroy", collectives_of(type).destroy, communicator.value);
}

void abort_communicator(Device device, Address communicator) {
  const DeviceType& type = device_type(device);
  call(type, "abort", collectives_of(type).abort, communicator.value);
}

void query(Device device, Address communicator) {
  const DeviceType& type = device_type(device);
  call(type, "query", collectives_of(type).query, communicator.value);
}

void wait(Device device, Address communicator, Int64Argument timeout_ms) {
  const DeviceType& type = device_type(device);
  call(type, "wait", collectives_of(type).wait, communicator.value, static_cast<int64_t>(timeout_ms.value));
}

// Marks a tensor as modified by a collective, which autograd cannot differentiate.
void mark_written(const char* kind, TensorObject* tensor) {
  check(!(grad_mode.enabled && requires_grad(tensor)), PyExc_RuntimeError, kind,
        ": a tensor that requires grad cannot be written to by a collective; use candelabra.no_grad() or "
        "tensor.detach()");
  ++tensor->storage->version;
}

// Memory of a collective that a library has given up stays allocated: data of slower ranks may
// still arrive in it.
class AbandonedMemory {
 public:
  AbandonedMemory(const DeviceType& type, py::handle send, py::handle receive)
      : has_library_(library_of(type) != nullptr), send_(send), receive_(receive) {}
  AbandonedMemory(const AbandonedMemory&) = delete;
  AbandonedMemory& operator=(const AbandonedMemory&) = delete;
  ~AbandonedMemory() {
    if (!has_library_ || std::uncaught_exceptions() == uncaught_) return;
    send_.inc_ref();
    receive_.inc_ref();
  }

 private:
  const bool has_library_;
  const py::handle send_, receive_;
  const int uncaught_ = std::uncaught_exceptions();
};

// The tensor that a collective does not use is None.
void run(Device device, Address address, TextArgument kind_text, py::handle send_object, py::handle receive_object,
         IntArgument rank_count, IntArgument reduction_number, IntArgument peer_rank) {
  refuse_recording("a collective runs");
  const DeviceType& type = device_type(device);
  const cb_collectives& table = collectives_of(type);
  void* const communicator = address.value;
  const char* const kind = kind_text;
  const int ranks = rank_count, reduction = reduction_number, peer = peer_rank;
  const auto tensor_of = [&](py::handle given, const char* which) -> TensorObject* {
    if (given.is_none()) return nullptr;
    check(is_tensor(given.ptr()), PyExc_TypeError, kind, "(): ", which, " must be a Tensor, not ",
          Py_TYPE(given.ptr())->tp_name);
    TensorObject* tensor = as_tensor(given.ptr());
    check(tensor->device() == device, PyExc_ValueError, kind, "(): ", which, " must be on the communicator's device");
    check(tensor->contiguous, PyExc_ValueError, kind, "(): ", which, " must be contiguous");
    return tensor;
  };
  TensorObject *send = tensor_of(send_object, "what is sent"), *receive = tensor_of(receive_object, "what is received");
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
  const AbandonedMemory abandoned(type, send_object, receive_object);
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
    call(type, kind, table.broadcast, communicator, from, to, static_cast<uint64_t>(send->numel), number, peer, stream);
  } else if (name == "reduce") {
    elements(1, 1);
    mark_written(kind, receive);
    call(type, kind, table.reduce, communicator, from, to, static_cast<uint64_t>(send->numel), number, reduction, peer,
         stream);
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
}

void group(Device device, TruthArgument begins) {
  const DeviceType& type = device_type(device);
  const cb_collectives& table = collectives_of(type);
  call(type, begins ? "group_begin" : "group_end", begins ? table.group_begin : table.group_end);
}

}  // namespace

void register_collectives(py::module_& module) {
  using namespace py::literals;
  module.def("communicator_library", load_library, "device_type"_a, "path"_a,
             "Load the collectives of a device type from a library other than its backend's.");
  module.def("communicator_available", has_collectives, "device"_a, "Whether a device type has collectives.");
  module.def("communicator_version", version, "device"_a,
             "The name and the version of a device's collectives library.");
  module.def("communicator_id", unique_id, "device"_a, "Create the id of a new communicator: 128 bytes.");
  module.def("communicator_create", create, "device"_a, "id"_a, "rank"_a, "size"_a, "timeout_ms"_a, "name"_a,
             "Create a communicator; all ranks must call this. Returns its address.");
  module.def("communicator_split", split, "device"_a, "communicator"_a, "color"_a, "key"_a, "timeout_ms"_a, "name"_a,
             "Split a communicator; returns the new one, or None.");
  module.def("communicator_rank", rank, "device"_a, "communicator"_a, "This process's rank and the number of ranks.");
  module.def("communicator_destroy", destroy, "device"_a, "communicator"_a,
             "Wait for queued work and destroy a communicator.");
  module.def("communicator_abort", abort_communicator, "device"_a, "communicator"_a,
             "Abort the collectives of a communicator.");
  module.def("communicator_query", query, "device"_a, "communicator"_a, "Raise if a communicator has failed.");
  module.def("communicator_wait", wait, "device"_a, "communicator"_a, "timeout_ms"_a,
             "Wait for all work queued on a communicator.");
  module.def("communicator_run", run, "device"_a, "communicator"_a, "kind"_a, "send"_a, "receive"_a, "size"_a,
             "reduction"_a, "peer"_a, "Queue a collective on the current stream.");
  module.def("communicator_group", group, "device"_a, "begins"_a, "Begin or end a group of collectives.");
}

}  // namespace candelabra
