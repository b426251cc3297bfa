#include "device/device.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <charconv>
#include <cstring>
#include <deque>

#include "device/backend_table.hpp"
#include "device/host_services.hpp"
#include "device/streams.hpp"
#include "operators/operator.hpp"

namespace candelabra {

namespace {

struct Registered : DeviceType {
  cb_backend completed_table;
  bool ready = false;  // all kernels are registered; find_device_type() skips it until then
};

// What the core reads of cb_backend.last_error().
constexpr size_t longest_message = 4096;

// A deque: addresses stay when it grows.
std::deque<Registered> types;
PyObject* loader = nullptr;
Device default_value;
bool default_chosen = false;

struct DeviceObject {
  PyObject_HEAD Device value;
};
PyTypeObject* device_py_type = nullptr;
Device value_of(PyObject* self) {
  return reinterpret_cast<DeviceObject*>(self)->value;
}

// A device type with one device in host memory has no index to tell: "cpu", as against "cuda:0".
bool has_index(const DeviceType& type) {
  return type.device_count > 1 || !type.has(CB_CAP_HOST_MEMORY);
}

void load_device_type(std::string_view name) {
  if (!loader) raise(backend_error, "no backend for device '", std::string(name), "' is loaded");
  Ref<> argument = owned(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  owned(PyObject_CallOneArg(loader, argument.get()));
}

PyObject* device_new(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:device", const_cast<char**>(names), &type, &index))
      return nullptr;
    Device device = device_from_object(type);
    if (index != Py_None) {
      long number = PyLong_AsLong(index);
      if (number == -1 && PyErr_Occurred()) return nullptr;
      const DeviceType& found = device_type(device);
      check(number >= 0 && number < found.device_count, PyExc_RuntimeError, "device index ", number,
            " is out of range: '", found.name, "' has ", found.device_count, " device(s)");
      device.index = static_cast<int8_t>(number);
    }
    return device_object(device);
  });
}

PyObject* device_repr(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const DeviceType& type = device_type(value_of(self));
    return has_index(type)
               ? PyUnicode_FromFormat("device(type='%s', index=%d)", type.name.c_str(), value_of(self).index)
               : PyUnicode_FromFormat("device(type='%s')", type.name.c_str());
  });
}
PyObject* device_str(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr),
                   [&] { return PyUnicode_FromString(to_text(value_of(self)).c_str()); });
}
PyObject* device_compare(PyObject* a, PyObject* b, int operation) {
  if (!is_device_object(a) || !is_device_object(b) || (operation != Py_EQ && operation != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (operation == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
  return value_of(self).type * 256 + value_of(self).index + 1;
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr),
                   [&] { return Py_BuildValue("O(s)", Py_TYPE(self), to_text(value_of(self)).c_str()); });
}

PyGetSetDef device_getset[] = {
    {"type", [](PyObject* self, void*) { return PyUnicode_FromString(device_type(value_of(self)).name.c_str()); },
     nullptr, "The device type, for instance ``cpu``.", nullptr},
    {"index",
     [](PyObject* self, void*) -> PyObject* {
       if (!has_index(device_type(value_of(self)))) Py_RETURN_NONE;
       return PyLong_FromLong(value_of(self).index);
     },
     nullptr, "The number of the device within its type; None where there is only the host.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot device_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_new)},
    {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
    {Py_tp_str, reinterpret_cast<void*>(device_str)},
    {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
    {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
    {Py_tp_getset, device_getset},
    {Py_tp_methods, device_methods},
    {Py_tp_doc,
     const_cast<char*>("device(type, index=None)\n\nWhere a tensor lives: ``device(\"cpu\")``, ``device(\"cuda:1\")``; "
                       "a number alone is that of the "
                       "accelerator.")},
    {0, nullptr},
};
PyType_Spec device_spec = {"candelabra.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};

const cb_backend* open_library(const std::string& name, const std::string& distribution, const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    raise(backend_error, "the library of the backend for device '", name, "' (", distribution,
          ") could not be opened: ", reason ? reason : path);
  }
  auto entry = reinterpret_cast<cb_backend_entry>(dlsym(library, "candelabra_backend"));
  check(entry, backend_error, path, " (", distribution,
        ") exports no function candelabra_backend; see docs/backends.md");
  const cb_backend* table = entry(&host_services);
  check_table(name, distribution, table);
  return table;
}

// The kernel of a checked entry, with what it does not know withheld.
Kernel kernel_of(const cb_kernel_entry& entry, const cb_backend& backend) {
  const uint64_t known = dtypes_of_minor(std::min<uint32_t>(backend.abi_minor, CB_ABI_MINOR));
  const uint64_t dtypes = entry.dtypes ? entry.dtypes & known : known;
  return {.compiled = entry.kernel,
          .backend = &backend,
          .flags = entry.flags,
          .is_restricted = dtypes != dtypes_of_minor(CB_ABI_MINOR),
          .dtypes = dtypes,
          .known_dtypes = known};
}

void set_python_kernel(Operator& op, int number, PyObject* function) {
  Kernel& kernel = op.kernels[number];
  const Ref<> before(kernel.python);
  kernel = {.python = Py_NewRef(function), .backend = device_type(number).original};
}

PyObject* register_backend(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char* name;
    const char* distribution;
    const char* path;
    PyObject* python_kernels = nullptr;
    if (!PyArg_ParseTuple(arguments, "ssz|O!:register_backend", &name, &distribution, &path, &PyDict_Type,
                          &python_kernels))
      return nullptr;
    if (int taken = find_device_type(name); taken >= 0) {
      raise(backend_error, "device '", name, "' already has a backend: ", device_type(taken).distribution);
    }
    check(types.size() < max_device_types, backend_error, "no more than ", max_device_types,
          " device types can be loaded");
    Registered added;
    added.name = name;
    added.distribution = distribution;
    if (path) {
      added.original = open_library(name, distribution, path);
      added.completed_table = completed(*added.original);
    } else {
      added.completed_table = host_memory_backend("");
    }
    Registered& type = types.emplace_back(std::move(added));
    const int number = static_cast<int>(types.size()) - 1;
    type.table = &type.completed_table;
    type.completed_table.device_type = type.name.c_str();
    try {
      if (type.table->initialize) {
        int32_t status = type.table->initialize();
        if (status != CB_OK) raise_backend_failure(type, "initialize", status);
      }
      int32_t status = type.table->device_count(&type.device_count);
      if (status != CB_OK) raise_backend_failure(type, "device_count", status);
      check(type.device_count >= 0 && type.device_count <= 127, backend_error, type.name, " (", type.distribution,
            "): device_count() gave ", type.device_count, "; there are at most 127 devices of a type");
      check(type.device_count > 0, backend_error, type.name, ": no device found (", type.distribution, ")");
    } catch (...) {
      types.pop_back();
      throw;
    }
    for (const cb_kernel_entry& entry : kernel_entries(*type.table)) {
      // A kernel of an operator this core does not know belongs to a newer one: nothing will ask
      // for it.
      if (Operator* op = find_operator(entry.operator_name)) op->kernels[number] = kernel_of(entry, *type.original);
    }
    PyObject *operator_name, *function;
    for (Py_ssize_t at = 0; python_kernels && PyDict_Next(python_kernels, &at, &operator_name, &function);) {
      const char* characters = PyUnicode_AsUTF8(operator_name);
      if (!characters) throw PythonError();
      if (Operator* op = find_operator(characters)) set_python_kernel(*op, number, function);
    }
    type.ready = true;
    Py_RETURN_NONE;
  });
}

PyObject* register_kernel(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char* name;
    const char* operator_name;
    PyObject* function;
    if (!PyArg_ParseTuple(arguments, "ssO:register_kernel", &name, &operator_name, &function)) return nullptr;
    int number = find_device_type(name);
    check(number >= 0, backend_error, "register_kernel(): no backend for device '", name, "' is loaded");
    check(PyCallable_Check(function), PyExc_TypeError, "register_kernel(): the kernel of '", operator_name,
          "' must be callable, not ", Py_TYPE(function)->tp_name);
    Operator* op = find_operator(operator_name);
    if (!op) Py_RETURN_FALSE;
    set_python_kernel(*op, number, function);
    Py_RETURN_TRUE;
  });
}

// The kernel of a custom operator out of a shared library of its own. The library stays open:
// kernels are not taken back.
PyObject* register_compiled_kernel(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char *name, *operator_name, *path, *symbol;
    if (!PyArg_ParseTuple(arguments, "ssss:register_compiled_kernel", &name, &operator_name, &path, &symbol))
      return nullptr;
    const int number = find_device_type(name);
    check(number >= 0, backend_error, "register_compiled_kernel(): no backend for device '", name, "' is loaded");
    Operator* op = find_operator(operator_name);
    check(op && op->schema.custom, PyExc_ValueError, "register_compiled_kernel(): there is no custom operator ",
          operator_name);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      raise(PyExc_OSError, "the library of the operator ", operator_name,
            " could not be opened: ", reason ? reason : path);
    }
    auto kernel = reinterpret_cast<cb_kernel>(dlsym(library, symbol));
    check(kernel, PyExc_OSError, path, " exports no function ", symbol, ", the kernel of ", operator_name);
    op->kernels[number] = {.compiled = kernel, .backend = device_type(number).original};
    Py_RETURN_NONE;
  });
}

PyObject* set_backend_loader(PyObject*, PyObject* function) {
  Py_XSETREF(loader, Py_NewRef(function));
  Py_RETURN_NONE;
}

PyObject* backend_info(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    Ref<> kernels = owned(PyList_New(0));
    for (Operator* op : all_operators()) {
      if (!op->kernels[device.type].there()) continue;
      Ref<> text = owned(PyUnicode_FromString(op->schema.name.c_str()));
      if (PyList_Append(kernels.get(), text.get()) < 0) return nullptr;
    }
    const cb_backend& table = *type.table;
    const char* description = table.describe ? table.describe() : nullptr;
    return Py_BuildValue("{s:s,s:s,s:s,s:I,s:I,s:i,s:K,s:O,s:O,s:z}", "device_type", type.name.c_str(), "distribution",
                         type.distribution.c_str(), "version", table.version ? table.version : "", "abi_major",
                         type.original ? type.original->abi_major : table.abi_major, "abi_minor",
                         type.original ? type.original->abi_minor : table.abi_minor, "device_count", type.device_count,
                         "capabilities", static_cast<unsigned long long>(table.capabilities), "kernels", kernels.get(),
                         "compiled", type.original ? Py_True : Py_False, "description", description);
  });
}

PyObject* memory_statistics(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    cb_memory_statistics result{};
    result.size = sizeof result;
    int32_t status = device_type(device).table->memory_statistics(device.index, &result);
    if (status != CB_OK) raise_backend_failure(device_type(device), "memory_statistics", status);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "allocated", static_cast<long long>(result.allocated),
                         "allocated_peak", static_cast<long long>(result.allocated_peak), "reserved",
                         static_cast<long long>(result.reserved), "reserved_peak",
                         static_cast<long long>(result.reserved_peak), "allocation_count",
                         static_cast<long long>(result.allocation_count), "cache_hit_count",
                         static_cast<long long>(result.cache_hit_count));
  });
}

PyObject* device_properties(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    cb_device_properties result{};
    result.size = sizeof result;
    if (type.table->device_properties) {
      int32_t status = type.table->device_properties(device.index, &result);
      if (status != CB_OK) raise_backend_failure(type, "device_properties", status);
    }
    return Py_BuildValue("{s:s,s:L,s:L,s:i,s:i}", "name", result.name[0] ? result.name : type.name.c_str(),
                         "total_memory", static_cast<long long>(result.total_memory), "free_memory",
                         static_cast<long long>(result.free_memory), "processor_count", result.processor_count,
                         "architecture", result.architecture);
  });
}

PyObject* empty_cache(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    device_type(device).table->empty_cache(device.index);
    Py_RETURN_NONE;
  });
}

PyObject* reset_peak_statistics(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    device_type(device).table->reset_peak_statistics(device.index);
    Py_RETURN_NONE;
  });
}

PyObject* synchronize(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Device device = device_from_object(argument);
    int32_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = device_type(device).table->synchronize(device.index);
    Py_END_ALLOW_THREADS;
    if (status != CB_OK) raise_backend_failure(device_type(device), "synchronize", status);
    Py_RETURN_NONE;
  });
}

PyObject* set_memory_limit(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    long long bytes;
    if (!PyArg_ParseTuple(arguments, "OL:set_memory_limit", &object, &bytes)) return nullptr;
    Device device = device_from_object(object);
    int32_t status = device_type(device).table->set_memory_limit(device.index, bytes);
    if (status != CB_OK) raise_backend_failure(device_type(device), "set_memory_limit", status);
    Py_RETURN_NONE;
  });
}

PyObject* get_num_threads(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr),
                   [&] { return PyLong_FromLong(device_type(device_from_object(argument)).table->thread_count()); });
}

PyObject* set_num_threads(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int count;
    if (!PyArg_ParseTuple(arguments, "Oi:set_num_threads", &object, &count)) return nullptr;
    check(count > 0, PyExc_RuntimeError, "set_num_threads expects a positive integer");
    const DeviceType& type = device_type(device_from_object(object));
    int32_t status = type.table->set_thread_count(count);
    if (status != CB_OK) raise_backend_failure(type, "set_num_threads", status);
    Py_RETURN_NONE;
  });
}

// The backend's extension "flush_denormal": a pointer to int32_t (*)(int32_t on), which returns a
// cb_status.
PyObject* set_flush_denormal(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int on;
    if (!PyArg_ParseTuple(arguments, "Op:set_flush_denormal", &object, &on)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const void* extension = type.table->extension ? type.table->extension("flush_denormal") : nullptr;
    if (!extension) Py_RETURN_FALSE;
    const int32_t status = (*static_cast<int32_t (*const*)(int32_t)>(extension))(on);
    if (status != CB_OK) raise_backend_failure(type, "set_flush_denormal", status);
    Py_RETURN_TRUE;
  });
}

PyObject* loaded_device_types(PyObject*, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Ref<> names = owned(PyList_New(0));
    for (const Registered& type : types) {
      if (!type.ready) continue;
      Ref<> name = owned(PyUnicode_FromString(type.name.c_str()));
      if (PyList_Append(names.get(), name.get()) < 0) return nullptr;
    }
    return names.release();
  });
}

PyObject* get_default_device(PyObject*, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return device_object(default_device()); });
}

PyObject* set_default_device_function(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    set_default_device(object == Py_None ? device_from_text("cpu") : device_from_object(object));
    Py_RETURN_NONE;
  });
}

void tell_backends_of_fork() {
  for (Registered& type : types) type.table->after_fork_in_child();
}

}  // namespace

PyMethodDef device_functions[] = {
    {"set_backend_loader", set_backend_loader, METH_O,
     "Set the function that loads the backend of a device type by name."},
    {"register_backend", register_backend, METH_VARARGS,
     "Register a device type: name, distribution, path of its library or None, and its kernels in Python by operator "
     "name."},
    {"register_compiled_kernel", register_compiled_kernel, METH_VARARGS,
     "register_compiled_kernel(device_type, operator_name, path, symbol)\n\nTake a function of a shared library as the "
     "kernel of a "
     "custom operator."},
    {"register_kernel", register_kernel, METH_VARARGS,
     "Register a Python kernel: device type, operator name, callable."},
    {"backend_info", backend_info, METH_O, "What is known of the backend of a device type."},
    {"memory_statistics", memory_statistics, METH_O, "The memory statistics of a device."},
    {"device_properties", device_properties, METH_O, "The properties of a device."},
    {"empty_cache", empty_cache, METH_O, "Give cached memory of a device back to the system."},
    {"reset_peak_statistics", reset_peak_statistics, METH_O, "Start the peaks of the memory statistics anew."},
    {"synchronize", synchronize, METH_O, "Wait for everything queued on a device."},
    {"set_memory_limit", set_memory_limit, METH_VARARGS, "Bound the memory of a device."},
    {"get_num_threads", get_num_threads, METH_O, "How many threads a backend computes with."},
    {"set_num_threads", set_num_threads, METH_VARARGS, "Set how many threads a backend computes with."},
    {"set_flush_denormal", set_flush_denormal, METH_VARARGS,
     "Set whether a backend takes denormal numbers for zero; returns whether it can."},
    {"loaded_device_types", loaded_device_types, METH_NOARGS, "Names of the device types whose backend is loaded."},
    {"get_default_device", get_default_device, METH_NOARGS, "The device of tensors made without device=."},
    {"set_default_device", set_default_device_function, METH_O, "Set the device of tensors made without device=."},
    {nullptr, nullptr, 0, nullptr},
};

DeviceType& device_type(int type) {
  return types[static_cast<size_t>(type)];
}
int device_type_count() {
  return static_cast<int>(types.size());
}

int find_device_type(std::string_view name) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].ready && types[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string to_text(Device device) {
  const DeviceType& type = device_type(device);
  return has_index(type) ? text(type.name, ":", static_cast<int>(device.index)) : type.name;
}

Device device_from_text(std::string_view text_) {
  std::string_view name = text_.substr(0, text_.find(':'));
  int index = 0;
  if (name.size() < text_.size()) {
    std::string_view digits = text_.substr(name.size() + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    check(!digits.empty() && error == std::errc() && end == digits.data() + digits.size() && index >= 0,
          PyExc_RuntimeError, "Invalid device string: '", std::string(text_), "'");
  }
  check(!name.empty(), PyExc_RuntimeError, "Invalid device string: '", std::string(text_), "'");
  if (find_device_type(name) < 0) load_device_type(name);
  int type = find_device_type(name);
  check(type >= 0, backend_error, "the backend for device '", std::string(name), "' registered nothing");
  if (name.size() == text_.size()) index = current_index(type);
  check(index < device_type(type).device_count, PyExc_RuntimeError, "Invalid device index ", index, ": '",
        std::string(name), "' has ", device_type(type).device_count, " device(s)");
  return {static_cast<int8_t>(type), static_cast<int8_t>(index)};
}

Device default_device() {
  if (!default_chosen) {
    const Device cpu = device_from_text("cpu");
    // Another thread may have chosen one while the backend was loaded.
    if (!default_chosen) set_default_device(cpu);
  }
  return default_value;
}

void set_default_device(Device device) {
  default_value = device;
  default_chosen = true;
}

PyObject* device_object(Device device) {
  DeviceObject* object = PyObject_New(DeviceObject, device_py_type);
  if (!object) return nullptr;
  object->value = device;
  return reinterpret_cast<PyObject*>(object);
}

bool is_device_object(PyObject* object) {
  return Py_TYPE(object) == device_py_type;
}

Device device_from_object(PyObject* object) {
  if (is_device_object(object)) return value_of(object);
  if (PyUnicode_Check(object)) {
    Py_ssize_t length;
    const char* characters = PyUnicode_AsUTF8AndSize(object, &length);
    if (!characters) throw PythonError();
    return device_from_text({characters, static_cast<size_t>(length)});
  }
  if (PyLong_Check(object) && !PyBool_Check(object)) {  // a number of the accelerator's
    int overflow = 0;
    check(PyLong_AsLongAndOverflow(object, &overflow) >= 0 && overflow == 0, PyExc_RuntimeError,
          "Device index must not be negative");
    const Ref<> module(PyImport_ImportModule("candelabra.accelerator"));
    if (!module) throw PythonError();
    const Ref<> found(PyObject_CallMethod(module.get(), "resolve", "O", object));
    if (!found) throw PythonError();
    return value_of(found.get());
  }
  raise(PyExc_TypeError,
        "expected a device: candelabra.device, str such as 'cpu' or 'cuda:0', or a number of the accelerator's, not ",
        Py_TYPE(object)->tp_name);
}

void raise_backend_failure(const DeviceType& type, const char* what, int32_t status) {
  const char* message = type.table->last_error();
  const std::string shown(message ? message : "", message ? strnlen(message, longest_message) : 0);
  if (shown.empty()) {
    raise(exception_of_status(status), type.name, ": ", what, " failed",
          status == CB_NOT_IMPLEMENTED ? " (this backend does not have it)" : text(" with status ", status), " (",
          type.distribution, ")");
  }
  throw Error(exception_of_status(status), text(type.name, ": ", shown),
              text("in ", what, "() of ", type.distribution));
}

bool init_device(PyObject* module) {
  device_py_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&device_spec));
  if (!device_py_type || PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_py_type)) < 0)
    return false;
  pthread_atfork(nullptr, nullptr, tell_backends_of_fork);
  return PyModule_AddFunctions(module, device_functions) == 0;
}

}  // namespace candelabra
