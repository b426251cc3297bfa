// Generators: the Python type, one default generator per device, and their initial seed.
#include "device/random.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "dispatch/call.hpp"
#include "interop/interop.hpp"
#include "python/bindings.hpp"

namespace candelabra {

namespace {

struct Generator {
  Device device;
  GeneratorState state;

  Generator(Device device, GeneratorState state) : device(device), state(state) {}
  // pybind11 calls this alone for an object whose __init__ was skipped, which is then a generator of
  // the first device.
  static void* operator new(size_t bytes) { return std::memset(::operator new(bytes), 0, bytes); }
  static void operator delete(void* memory) { ::operator delete(memory); }
};

PyTypeObject* generator_type = nullptr;
// By device type and index; created on first use. Their Python objects are never freed.
std::vector<Generator*> default_generators[max_device_types];
// The last seed from manual_seed(). Devices used for the first time later start from it too.
std::optional<uint64_t> manual_seed_value;

uint64_t random_seed() {
  std::random_device source;
  return static_cast<uint64_t>(source()) << 32 | source();
}

uint64_t seed_from_object(py::handle seed_object) {
  PyObject* object = seed_object.ptr();
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

Generator& default_generator(Device device) {
  std::vector<Generator*>& of_type = default_generators[device.type];
  const size_t index = static_cast<size_t>(device.index);
  if (of_type.size() <= index) of_type.resize(index + 1);
  if (!of_type[index]) {
    const uint64_t seed = manual_seed_value ? *manual_seed_value : random_seed();
    auto made = std::make_unique<Generator>(device, GeneratorState{seed, 0});
    Generator* const generator = made.get();
    py::cast(std::move(made)).release();
    of_type[index] = generator;
  }
  return *of_type[index];
}

Generator new_generator(py::handle device) {
  // PyTorch's default seed of a new generator, so that its numbers are the same in every run.
  constexpr uint64_t initial_seed = 67280421310721u;
  return {device.is_none() ? default_device() : device_from_object(device.ptr()), {initial_seed, 0}};
}

Generator& set_seed(Generator& self, py::handle seed) {
  self.state = {seed_from_object(seed), 0};
  return self;
}

uint64_t set_random_seed(Generator& self) {
  self.state = {random_seed(), 0};
  return self.state.seed;
}

constexpr int64_t state_bytes = 2 * sizeof(uint64_t);

py::object get_state(const Generator& self) {
  const uint64_t words[2] = {self.state.seed, self.state.offset};
  // The state is in host memory, so that states of all devices can be stored and compared alike.
  const Device device = device_type(self.device).has(CB_CAP_HOST_MEMORY) ? self.device : host_device();
  TensorRef result = empty(Dims{state_bytes}, Dtype::UInt8, device);
  copy_bytes_from_host(device, result->data(), words, sizeof(words));
  return stolen(result.release_object());
}

Generator& set_state(Generator& self, py::handle state) {
  PyObject* object = state.ptr();
  check(is_tensor(object), PyExc_TypeError, "expected a candelabra.Tensor, but got ", Py_TYPE(object)->tp_name);
  check(as_tensor(object)->dtype == Dtype::UInt8, PyExc_TypeError, "RNG state must be a uint8 tensor, not ",
        name(as_tensor(object)->dtype));
  check(as_tensor(object)->numel == state_bytes, PyExc_RuntimeError,
        "RNG state is wrong size: ", as_tensor(object)->numel, " bytes instead of ", state_bytes);
  const TensorRef block = contiguous(as_tensor(object));
  uint64_t words[2];
  copy_bytes_to_host(block->device(), words, block->data(), sizeof(words));
  self.state = {words[0], words[1]};
  return self;
}

void set_offset(Generator& self, py::handle offset_object) {
  PyObject* object = offset_object.ptr();
  check(PyLong_Check(object) && !PyBool_Check(object), PyExc_TypeError, "set_offset expected an int, but got ",
        Py_TYPE(object)->tp_name);
  const uint64_t offset = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_RuntimeError, "set_offset(): an offset is between 0 and 2**64 - 1");
  }
  self.state.offset = offset;
}

std::string shown_generator(const Generator& self) {
  return text("<candelabra.Generator device='", to_text(self.device), "' seed=", self.state.seed, ">");
}

void manual_seed(py::handle seed_object) {
  const uint64_t seed = seed_from_object(seed_object);
  manual_seed_value = seed;
  for (std::vector<Generator*>& of_type : default_generators) {
    for (Generator* generator : of_type) {
      if (generator) generator->state = {seed, 0};
    }
  }
}

Generator& default_generator_of(py::handle device) {
  return default_generator(device.is_none() ? default_device() : device_from_object(device.ptr()));
}

Generator& as_generator(PyObject* object) {
  return py::cast<Generator&>(py::handle(object));
}

}  // namespace

bool is_generator(PyObject* object) {
  return Py_TYPE(object) == generator_type;
}

GeneratorState& generator_state(PyObject* object, Device device) {
  if (!object || object == Py_None) return default_generator(device).state;
  check(is_generator(object), PyExc_TypeError, "generator must be a candelabra.Generator, not ",
        Py_TYPE(object)->tp_name);
  Generator& generator = as_generator(object);
  check(generator.device.type == device.type, PyExc_RuntimeError, "Expected a '", device_type(device).name,
        "' device type for generator but found '", device_type(generator.device).name, "'");
  return generator.state;
}

void register_random(py::module_& module) {
  using namespace py::literals;
  constexpr auto itself = py::return_value_policy::reference;
  py::class_<Generator> type(module, "Generator", py::is_final(), "A stream of random numbers: a seed and a position.");
  type.attr("__module__") = "candelabra";
  generator_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.def(py::init(&new_generator), "device"_a = py::none())
      .def("manual_seed", set_seed, "seed"_a, itself, "Start at the beginning of this seed's stream.")
      .def("seed", set_random_seed, "Start from a seed that the system chooses, and return it.")
      .def(
          "initial_seed", [](const Generator& self) { return self.state.seed; }, "The seed of the stream.")
      .def("get_state", get_state, "The seed and the position in the stream, as a uint8 tensor.")
      .def(
          "get_offset", [](const Generator& self) { return self.state.offset; },
          "The position in the stream, in blocks of four 32-bit numbers.")
      .def("set_offset", set_offset, "offset"_a, "Move to a position in the stream.")
      .def("set_state", set_state, "state"_a, itself, "Restore the seed and the position that get_state() returned.")
      .def(
          "clone_state", [](const Generator& self) { return Generator(self); },
          "A new generator with the same seed and position.")
      .def("__repr__", shown_generator)
      .def_property_readonly(
          "device", [](const Generator& self) { return self.device; },
          "The device whose tensors this generator fills.");
  module.def("manual_seed", manual_seed, "seed"_a,
             "Seed the default generators of all devices, including devices loaded later.");
  module.def("default_generator", default_generator_of, "device"_a, itself, "The default generator of a device.");
}

}  // namespace candelabra
