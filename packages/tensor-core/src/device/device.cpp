#include "device/device.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <deque>
#include <fstream>
#include <utility>

#include "device/backend_table.hpp"
#include "device/host_services.hpp"
#include "device/streams.hpp"
#include "operators/operator.hpp"
#include "python/bindings.hpp"

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
  bool given_index;  // device("cpu", 0), as against device("cpu"); tensors are on the latter
};
PyTypeObject* device_py_type = nullptr;

// PyTorch's device types. They can be named where no backend provides them: device("cuda") has the
// type first_named - i, where i is the position here, until its first use loads the backend.
constexpr std::array<std::string_view, 18> known_names = {
    "cuda", "ipu",  "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",
    "fpga", "maia", "xla", "lazy",   "vulkan", "mps",    "hpu",   "mtia", "privateuseone"};
constexpr int first_named = -2;
std::string_view unloaded_name(Device device) {
  return known_names[static_cast<size_t>(first_named - device.type)];
}
// The device of an object, whose type is negative while its backend is not loaded.
Device value_of(PyObject* self) {
  Device& value = reinterpret_cast<DeviceObject*>(self)->value;
  if (value.type < 0) [[unlikely]] {
    if (const int type = find_device_type(unloaded_name(value)); type >= 0) value.type = static_cast<int8_t>(type);
  }
  return value;
}
std::string_view type_name(Device device) {
  return device.type < 0 ? unloaded_name(device) : std::string_view(device_type(device).name);
}

// A device type with one device in host memory has no index to tell: "cpu", as against "cuda:0".
bool has_index(const DeviceType& type) {
  return type.device_count > 1 || !(type.has(CB_CAP_HOST_MEMORY) || type.name == "meta");
}
bool gives_index(PyObject* self) {
  const Device device = value_of(self);
  return reinterpret_cast<DeviceObject*>(self)->given_index || (device.type >= 0 && has_index(device_type(device)));
}
// As to_text(Device), with an index that the program gave.
std::string text_of(PyObject* self) {
  const Device device = value_of(self);
  return gives_index(self) ? text(type_name(device), ":", static_cast<int>(device.index))
                           : std::string(type_name(device));
}
bool names_index(PyObject* type) {
  if (is_device_object(type)) return reinterpret_cast<DeviceObject*>(type)->given_index;
  return PyUnicode_Check(type) && PyUnicode_FindChar(type, ':', 0, PyUnicode_GET_LENGTH(type), 1) >= 0;
}

void add_meta_device_type();

void load_device_type(std::string_view name) {
  if (name == "meta") return add_meta_device_type();
  if (!loader) raise(backend_error, "no backend for device '", std::string(name), "' is loaded");
  Ref<> argument = owned(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  owned(PyObject_CallOneArg(loader, argument.get()));
}

// The name and the index in "cuda:1"; the index is -1 where there is none.
std::pair<std::string_view, int> parse_device(std::string_view text_) {
  const std::string_view name = text_.substr(0, text_.find(':'));
  int index = -1;
  if (name.size() < text_.size()) {
    const std::string_view digits = text_.substr(name.size() + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    check(!digits.empty() && error == std::errc() && end == digits.data() + digits.size() && index >= 0,
          PyExc_RuntimeError, "Invalid device string: '", std::string(text_), "'");
  }
  check(!name.empty(), PyExc_RuntimeError, "Invalid device string: '", std::string(text_), "'");
  return {name, index};
}

// A device of a known type can be named where its backend cannot be loaded.
Device named_device(PyObject* object) {
  try {
    return is_device_object(object) ? value_of(object) : device_from_object(object);
  } catch (const PythonError&) {
    if (!PyUnicode_Check(object) || !PyErr_ExceptionMatches(backend_error)) throw;
    const auto [name, index] = parse_device(PyUnicode_AsUTF8(object));
    const auto* known = std::ranges::find(known_names, name);
    if (known == known_names.end()) throw;
    PyErr_Clear();
    return {static_cast<int8_t>(first_named - (known - known_names.begin())),
            static_cast<int8_t>(std::clamp(index, 0, INT8_MAX))};
  }
}

// The number of devices that an index may name.
int nameable_devices(Device device) {
  return device.type < 0 || is_meta(device) ? INT8_MAX : device_type(device).device_count;
}

PyObject* device_new(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:device", const_cast<char**>(names), &type, &index))
      return nullptr;
    Device device = named_device(type);
    if (index != Py_None) {
      long number = PyLong_AsLong(index);
      if (number == -1 && PyErr_Occurred()) return nullptr;
      const int count = nameable_devices(device);
      check(number >= 0, PyExc_RuntimeError, "Device index must not be negative");
      check(number < count, PyExc_RuntimeError, "device index ", number, " is out of range: '", type_name(device),
            "' has ", count, " device(s)");
      device.index = static_cast<int8_t>(number);
    }
    PyObject* made = device_object(device);
    if (made) reinterpret_cast<DeviceObject*>(made)->given_index = index != Py_None || names_index(type);
    return made;
  });
}

PyObject* device_repr(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const std::string name(type_name(value_of(self)));
    return gives_index(self) ? PyUnicode_FromFormat("device(type='%s', index=%d)", name.c_str(), value_of(self).index)
                             : PyUnicode_FromFormat("device(type='%s')", name.c_str());
  });
}
PyObject* device_str(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return PyUnicode_FromString(text_of(self).c_str()); });
}
PyObject* device_compare(PyObject* a, PyObject* b, int operation) {
  if (!is_device_object(a) || !is_device_object(b) || (operation != Py_EQ && operation != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  const bool equal = value_of(a) == value_of(b) && gives_index(a) == gives_index(b);
  return PyBool_FromLong(equal == (operation == Py_EQ));
}
Py_hash_t device_hash(PyObject* self) {
  const Device device = value_of(self);
  // By name: the number of a type changes once its backend is loaded.
  const auto hash = static_cast<Py_hash_t>(std::hash<std::string_view>()(type_name(device)) >> 8 << 7) + device.index;
  return hash == -1 ? -2 : hash;
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr),
                   [&] { return Py_BuildValue("O(s)", Py_TYPE(self), text_of(self).c_str()); });
}

// The devices of the ``with`` blocks that this thread is in: tensors are made on the innermost.
struct Entered {
  Device device;
  bool given_index;
};
thread_local std::vector<Entered> entered_devices;
thread_local int entered_count = 0;  // its size, which is read without a guard

// Loads the backend where a device has only been named.
Device usable(const Entered& entered) {
  Device device = entered.device;
  if (device.type >= 0) return {device.type, is_meta(device) ? int8_t{0} : device.index};
  const std::string name(unloaded_name(device));
  return device_from_text(entered.given_index ? text(name, ":", static_cast<int>(device.index)) : name);
}

PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    entered_devices.push_back({value_of(self), gives_index(self)});
    ++entered_count;
    return Py_NewRef(self);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (entered_count > 0) {
    entered_devices.pop_back();
    --entered_count;
  }
  Py_RETURN_NONE;
}

PyGetSetDef device_getset[] = {
    {"type",
     [](PyObject* self, void*) {
       const std::string_view name = type_name(value_of(self));
       return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
     },
     nullptr, "The device type, for instance ``cpu``.", nullptr},
    {"index",
     [](PyObject* self, void*) -> PyObject* {
       if (!gives_index(self)) Py_RETURN_NONE;
       return PyLong_FromLong(value_of(self).index);
     },
     nullptr, "The number of the device within its type; None where there is only the host and none was given.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Make tensors on this device in the block, on this thread."},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
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

#if defined(__aarch64__)
constexpr int own_machine = EM_AARCH64;
#else
constexpr int own_machine = EM_X86_64;
#endif

std::string name_of_machine(int machine, int elf_class) {
  constexpr std::pair<int, const char*> names[] = {
      {EM_386, "i386"},      {EM_ARM, "ARM"},         {EM_PPC64, "PowerPC64"}, {EM_S390, "s390x"},
      {EM_X86_64, "x86-64"}, {EM_AARCH64, "AArch64"}, {EM_RISCV, "RISC-V"},    {258, "LoongArch"},
  };
  const auto* found = std::ranges::find(names, machine, &std::pair<int, const char*>::first);
  return text(found != std::end(names) ? found->second : text("ELF machine ", machine),
              elf_class == ELFCLASS32 ? " (32 bits)" : "");
}

// What the head of a file that dlopen() refused tells about the cause: nothing, or text to append.
// The loader's own message often is "No such file or directory" or "invalid ELF header".
std::string reason_in_file(const std::string& path) {
  std::array<unsigned char, 20> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  if (!file.is_open()) return "";
  if (std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return "; the file is not a shared library (ELF)";
  const bool is_big_endian = head[EI_DATA] == ELFDATA2MSB;
  const int machine = is_big_endian ? head[18] << 8 | head[19] : head[18] | head[19] << 8;
  if (machine == own_machine && head[EI_CLASS] == ELFCLASS64) return "";
  return text("; the file is for ", name_of_machine(machine, head[EI_CLASS]), ", this process runs on ",
              name_of_machine(own_machine, ELFCLASS64), ": reinstall the distribution for this machine");
}

const cb_backend* open_library(const std::string& name, const std::string& distribution, const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    const std::string shown = reason ? reason : path;
    raise(backend_error, "the library of the backend for device '", name, "' (", distribution,
          ") could not be opened: ", shown, reason_in_file(path));
  }
  auto entry = reinterpret_cast<cb_backend_entry>(dlsym(library, "candelabra_backend"));
  check(entry, backend_error, path, " (", distribution,
        ") exports no function candelabra_backend; see docs/backends.md");
  const cb_backend* table = entry(&host_services);
  check_table(name, distribution, table);
  return table;
}

// The kernel of a checked entry. Dtypes that its minor version does not have are withheld from it.
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

// Adds a device type whose table is complete, and asks the backend for its devices.
int add_device_type(const char* name, const char* distribution, const char* path) {
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
    const void* accelerator = type.table->extension ? type.table->extension("accelerator") : nullptr;
    check_accelerator_table(type.name, type.distribution, type.table->capabilities,
                            static_cast<const cb_accelerator*>(accelerator));
  } catch (...) {
    types.pop_back();
    throw;
  }
  return static_cast<int>(types.size()) - 1;
}

// Tensors of the device type meta have no memory. It needs no backend: shape rules are all there is
// to a call.
void add_meta_device_type() {
  const auto number = static_cast<int>(types.size());
  check(number < max_device_types, backend_error, "no more than ", max_device_types, " device types can be loaded");
  Registered& type = types.emplace_back();
  type.name = "meta";
  type.distribution = "candelabra-tensor-core";
  type.completed_table = meta_backend(type.name.c_str());
  type.table = &type.completed_table;
  for (Operator* op : all_operators()) op->kernels[static_cast<size_t>(number)].compiled = compute_nothing;
  meta_type = number;
  type.ready = true;
}

void register_kernels_of_table(const Registered& type, int number) {
  for (const cb_kernel_entry& entry : kernel_entries(*type.table)) {
    // A kernel of an operator this core does not know belongs to a newer one: nothing will ask
    // for it.
    if (Operator* op = find_operator(entry.operator_name)) op->kernels[number] = kernel_of(entry, *type.original);
  }
}

void register_backend(TextArgument name, TextArgument distribution, OptionalTextArgument path,
                      const py::dict& python_kernels) {
  const int number = add_device_type(name, distribution, path);
  Registered& type = types[static_cast<size_t>(number)];
  register_kernels_of_table(type, number);
  for (const auto& [operator_name, function] : python_kernels) {
    const char* characters = PyUnicode_AsUTF8(operator_name.ptr());
    if (!characters) throw PythonError();
    if (Operator* op = find_operator(characters)) set_python_kernel(*op, number, function.ptr());
  }
  type.ready = true;
}

bool register_kernel(TextArgument name, TextArgument operator_name, py::handle function) {
  const int number = find_device_type(name.value);
  check(number >= 0, backend_error, "register_kernel(): no backend for device '", name.value, "' is loaded");
  check(PyCallable_Check(function.ptr()), PyExc_TypeError, "register_kernel(): the kernel of '", operator_name.value,
        "' must be callable, not ", Py_TYPE(function.ptr())->tp_name);
  Operator* op = find_operator(operator_name.value);
  if (op) set_python_kernel(*op, number, function.ptr());
  return op != nullptr;
}

// The kernel of a custom operator out of a shared library of its own. The library stays open:
// kernels are not taken back.
void register_compiled_kernel(TextArgument name, TextArgument operator_name, TextArgument path, TextArgument symbol) {
  const int number = find_device_type(name.value);
  check(number >= 0, backend_error, "register_compiled_kernel(): no backend for device '", name.value, "' is loaded");
  Operator* op = find_operator(operator_name.value);
  check(op && op->schema.custom, PyExc_ValueError, "register_compiled_kernel(): there is no custom operator ",
        operator_name.value);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    raise(PyExc_OSError, "the library of the operator ", operator_name.value,
          " could not be opened: ", reason ? reason : path.value);
  }
  auto kernel = reinterpret_cast<cb_kernel>(dlsym(library, symbol));
  check(kernel, PyExc_OSError, path.value, " exports no function ", symbol.value, ", the kernel of ",
        operator_name.value);
  op->kernels[number] = {.compiled = kernel, .backend = device_type(number).original};
}

void set_cpu_fallback(TextArgument name, TruthArgument is_enabled) {
  const int number = find_device_type(name.value);
  check(number >= 0, backend_error, "set_cpu_fallback(): no backend for device '", name.value, "' is loaded");
  check(!is_enabled || std::strcmp(name, "cpu") != 0, PyExc_ValueError,
        "set_cpu_fallback(): the CPU itself has no fallback");
  types[static_cast<size_t>(number)].has_cpu_fallback = is_enabled != 0;
}

bool has_cpu_fallback(TextArgument name) {
  const int number = find_device_type(name.value);
  return number >= 0 && types[static_cast<size_t>(number)].has_cpu_fallback;
}

py::list loaded_device_types() {
  py::list names;
  for (const Registered& type : types) {
    if (type.ready) names.append(type.name);
  }
  return names;
}

PyObject* get_default_device(PyObject*, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return device_object(default_device()); });
}

void tell_backends_of_fork() {
  for (Registered& type : types) type.table->after_fork_in_child();
}

void shut_backends_down() {
  for (Registered& type : types) {
    if (type.ready) type.table->shutdown();
  }
}

}  // namespace

int meta_type = INT8_MIN - 1;  // no Device has this type

int32_t compute_nothing(cb_call*) {
  return CB_OK;
}

PyMethodDef device_functions[] = {
    {"get_default_device", get_default_device, METH_NOARGS, "The device of tensors made without device=."},
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
  auto [name, index] = parse_device(text_);
  if (find_device_type(name) < 0) load_device_type(name);
  int type = find_device_type(name);
  check(type >= 0, backend_error, "the backend for device '", std::string(name), "' registered nothing");
  if (index < 0) index = current_index(type);
  if (type == meta_type) index = 0;  // all tensors without memory are on one device
  check(index < device_type(type).device_count, PyExc_RuntimeError, "Invalid device index ", index, ": '",
        std::string(name), "' has ", device_type(type).device_count, " device(s)");
  return {static_cast<int8_t>(type), static_cast<int8_t>(index)};
}

Device default_device() {
  if (entered_count > 0) [[unlikely]]
    return usable(entered_devices.back());
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
  object->given_index = false;
  return reinterpret_cast<PyObject*>(object);
}

bool is_device_object(PyObject* object) {
  return Py_TYPE(object) == device_py_type;
}

Device device_from_object(PyObject* object) {
  if (is_device_object(object)) {
    const Device device = value_of(object);
    if (device.type >= 0 && !is_meta(device)) [[likely]]
      return device;
    return usable({.device = device, .given_index = gives_index(object)});
  }
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

void register_devices(py::module_& module) {
  using namespace py::literals;
  const py::object type = stolen(PyType_FromSpec(&device_spec));
  device_py_type = reinterpret_cast<PyTypeObject*>(py::handle(type).inc_ref().ptr());
  module.add_object("device", type);
  pthread_atfork(nullptr, nullptr, tell_backends_of_fork);
  // Registered first, so that it runs after the exit functions of programs.
  py::module_::import("atexit").attr("register")(py::cpp_function(shut_backends_down));
  module.def(
      "set_backend_loader", [](py::handle load) { Py_XSETREF(loader, load.inc_ref().ptr()); }, "load"_a,
      "Set the function that loads the backend of a device type by name.");
  module.def("register_backend", register_backend, "device_type"_a, "distribution"_a, "library"_a,
             "kernels"_a = py::dict(),
             "Register a device type: name, distribution, path of its library or None, and its kernels in Python by "
             "operator name.");
  module.def("register_compiled_kernel", register_compiled_kernel, "device_type"_a, "operator_name"_a, "path"_a,
             "symbol"_a, "Take a function of a shared library as the kernel of a custom operator.");
  module.def("register_kernel", register_kernel, "device_type"_a, "operator_name"_a, "kernel"_a,
             "Register a Python kernel; returns whether there is such an operator.");
  module.def("set_cpu_fallback", set_cpu_fallback, "device_type"_a, "is_enabled"_a,
             "Set whether operators without a kernel and a decomposition run on the CPU.");
  module.def("has_cpu_fallback", has_cpu_fallback, "device_type"_a,
             "Whether the CPU fallback of a loaded device type is on.");
  module.def("loaded_device_types", loaded_device_types, "Names of the device types whose backend is loaded.");
}

}  // namespace candelabra
