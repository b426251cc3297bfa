// Generators: the Python type, one default generator per device, and their initial seed.
#include "device/random.hpp"

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "dispatch/call.hpp"
#include "interop/interop.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

struct GeneratorObject {
  PyObject_HEAD Device device;
  GeneratorState state;
};

PyTypeObject* generator_type = nullptr;
// By device type and index; created on first use.
std::vector<GeneratorObject*> default_generators[max_device_types];
// The last seed from manual_seed(). Devices used for the first time later start from it too.
std::optional<uint64_t> manual_seed_value;

// Why a recording ends.
constexpr const char* state_changes = "the state of a random generator is read or set";

GeneratorObject* as_generator(PyObject* object) {
  return reinterpret_cast<GeneratorObject*>(object);
}

uint64_t random_seed() {
  std::random_device source;
  return static_cast<uint64_t>(source()) << 32 | source();
}

uint64_t seed_from_object(PyObject* object) {
  const Ref<> integer(PyIndex_Check(object) ? PyNumber_Index(object) : PyNumber_Long(object));
  if (!integer) throw PythonError();
  const Ref<> zero = owned(PyLong_FromLong(0));
  const int negative = PyObject_RichCompareBool(integer.get(), zero.get(), Py_LT);
  if (negative < 0) throw PythonError();
  // Negative seeds wrap around to 2^64 - |seed|, as in two's complement.
  const uint64_t seed =
      negative ? static_cast<uint64_t>(PyLong_AsLongLong(integer.get())) : PyLong_AsUnsignedLongLong(integer.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, "Overflow when unpacking long long: a seed is between -2**63 and 2**64 - 1");
  }
  return seed;
}

GeneratorObject* new_generator(Device device, uint64_t seed) {
  GeneratorObject* generator = PyObject_New(GeneratorObject, generator_type);
  if (!generator) throw PythonError();
  generator->device = device;
  generator->state = {seed, 0};
  return generator;
}

GeneratorObject* default_generator(Device device) {
  std::vector<GeneratorObject*>& of_type = default_generators[device.type];
  const size_t index = static_cast<size_t>(device.index);
  if (of_type.size() <= index) of_type.resize(index + 1);
  if (!of_type[index]) of_type[index] = new_generator(device, manual_seed_value ? *manual_seed_value : random_seed());
  return of_type[index];
}

PyObject* generator_new(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:Generator", const_cast<char**>(names), &device))
      return nullptr;
    // PyTorch's default seed of a new generator, so that its numbers are the same in every run.
    constexpr uint64_t initial_seed = 67280421310721u;
    return reinterpret_cast<PyObject*>(
        new_generator(device == Py_None ? default_device() : device_from_object(device), initial_seed));
  });
}

void generator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    refuse_recording(state_changes);
    as_generator(self)->state = {seed_from_object(seed), 0};
    return Py_NewRef(self);
  });
}

PyObject* generator_seed(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    refuse_recording(state_changes);
    as_generator(self)->state = {random_seed(), 0};
    return PyLong_FromUnsignedLongLong(as_generator(self)->state.seed);
  });
}

PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(as_generator(self)->state.seed);
}

constexpr int64_t state_bytes = 2 * sizeof(uint64_t);

PyObject* generator_get_state(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    refuse_recording(state_changes);
    const GeneratorState& state = as_generator(self)->state;
    const uint64_t words[2] = {state.seed, state.offset};
    const Device own = as_generator(self)->device;
    // The state is in host memory, so that states of all devices can be stored and compared alike.
    const Device device = device_type(own).has(CB_CAP_HOST_MEMORY) ? own : host_device();
    TensorRef result = empty(Dims{state_bytes}, Dtype::UInt8, device);
    copy_bytes_from_host(position_of(*result.get()), words, sizeof(words));
    return result.release_object();
  });
}

PyObject* generator_set_state(PyObject* self, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(is_tensor(object), PyExc_TypeError, "expected a candelabra.Tensor, but got ", Py_TYPE(object)->tp_name);
    check(as_tensor(object)->dtype == Dtype::UInt8, PyExc_TypeError, "RNG state must be a uint8 tensor, not ",
          name(as_tensor(object)->dtype));
    check(as_tensor(object)->numel == state_bytes, PyExc_RuntimeError,
          "RNG state is wrong size: ", as_tensor(object)->numel, " bytes instead of ", state_bytes);
    const TensorRef block = contiguous(as_tensor(object));
    uint64_t words[2];
    copy_bytes_to_host(words, position_of(*block.get()), sizeof(words));
    as_generator(self)->state = {words[0], words[1]};
    return Py_NewRef(self);
  });
}

PyObject* generator_get_offset(PyObject* self, PyObject*) {
  refuse_recording(state_changes);
  return PyLong_FromUnsignedLongLong(as_generator(self)->state.offset);
}

PyObject* generator_set_offset(PyObject* self, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    check(PyLong_Check(object) && !PyBool_Check(object), PyExc_TypeError, "set_offset expected an int, but got ",
          Py_TYPE(object)->tp_name);
    const uint64_t offset = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      raise(PyExc_RuntimeError, "set_offset(): an offset is between 0 and 2**64 - 1");
    }
    refuse_recording(state_changes);
    as_generator(self)->state.offset = offset;
    return Py_NewRef(Py_None);
  });
}

PyObject* generator_clone_state(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    GeneratorObject* copy = new_generator(as_generator(self)->device, 0);
    copy->state = as_generator(self)->state;
    return reinterpret_cast<PyObject*>(copy);
  });
}

PyObject* generator_device(PyObject* self, void*) {
  return device_object(as_generator(self)->device);
}

PyObject* generator_repr(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const std::string device = to_text(as_generator(self)->device);
    return PyUnicode_FromFormat("<candelabra.Generator device='%s' seed=%llu>", device.c_str(),
                                static_cast<unsigned long long>(as_generator(self)->state.seed));
  });
}

PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nStart at the beginning of this seed's stream."},
    {"seed", generator_seed, METH_NOARGS, "seed() -> int\n\nStart from a seed that the system chooses, and return it."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "initial_seed() -> int\n\nThe seed of the stream."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state() -> Tensor\n\nThe seed and the position in the stream, as a uint8 tensor."},
    {"get_offset", generator_get_offset, METH_NOARGS,
     "get_offset() -> int\n\nThe position in the stream, in blocks of four 32-bit numbers."},
    {"set_offset", generator_set_offset, METH_O, "set_offset(offset)\n\nMove to a position in the stream."},
    {"set_state", generator_set_state, METH_O,
     "set_state(state)\n\nRestore the seed and the position that get_state() returned."},
    {"clone_state", generator_clone_state, METH_NOARGS,
     "clone_state() -> Generator\n\nA new generator with the same seed and position."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef generator_attributes[] = {
    {"device", generator_device, nullptr, "The device whose tensors this generator fills.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot generator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(generator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(generator_repr)},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_attributes},
    {Py_tp_doc, const_cast<char*>("Generator(device=None)\n\nA stream of random numbers: a seed and a position.")},
    {0, nullptr},
};

PyType_Spec generator_spec = {"candelabra.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, generator_slots};

PyObject* manual_seed(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const uint64_t seed = seed_from_object(object);
    refuse_recording(state_changes);
    manual_seed_value = seed;
    for (std::vector<GeneratorObject*>& of_type : default_generators) {
      for (GeneratorObject* generator : of_type) {
        if (generator) generator->state = {seed, 0};
      }
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* default_generator_function(PyObject*, PyObject* device) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    return Py_NewRef(reinterpret_cast<PyObject*>(
        default_generator(device == Py_None ? candelabra::default_device() : device_from_object(device))));
  });
}

}  // namespace

PyMethodDef random_functions[] = {
    {"manual_seed", manual_seed, METH_O, "Seed the default generators of all devices, including devices loaded later."},
    {"default_generator", default_generator_function, METH_O, "The default generator of a device."},
    {nullptr, nullptr, 0, nullptr},
};

bool is_generator(PyObject* object) {
  return Py_TYPE(object) == generator_type;
}

GeneratorState& generator_state(PyObject* generator, Device device) {
  if (!generator || generator == Py_None) return default_generator(device)->state;
  check(is_generator(generator), PyExc_TypeError, "generator must be a candelabra.Generator, not ",
        Py_TYPE(generator)->tp_name);
  check(as_generator(generator)->device.type == device.type, PyExc_RuntimeError, "Expected a '",
        device_type(device).name, "' device type for generator but found '",
        device_type(as_generator(generator)->device).name, "'");
  return as_generator(generator)->state;
}

bool init_random(PyObject* module) {
  generator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&generator_spec));
  return generator_type && PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)) == 0;
}

}  // namespace candelabra
