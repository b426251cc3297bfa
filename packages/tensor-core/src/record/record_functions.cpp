// Python classes Recording and Program, and the functions that tell the recorder of this thread.
#include <pybind11/stl.h>

#include <algorithm>

#include "python/bindings.hpp"
#include "record/bindings.hpp"
#include "record/lowering.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

TensorObject* tensor_of(py::handle object) {
  check(is_tensor(object.ptr()), PyExc_TypeError, "expected a Tensor, but got ", Py_TYPE(object.ptr())->tp_name);
  return as_tensor(object.ptr());
}

py::object reason_of(const Recorder& recording) {
  if (!recording.is_refused()) return py::none();
  return py::make_tuple(recording.reason(), recording.reason_file(), recording.reason_line());
}

// Memory that was made while recording and lives on.
std::vector<int> living_buffers(const Recorder& recording) {
  std::vector<int> result;
  for (size_t b = 0; b < recording.buffers.size(); ++b) {
    const RecordedBuffer& buffer = recording.buffers[b];
    if (!buffer.is_existing && !buffer.is_freed && !buffer.is_scratch) result.push_back(static_cast<int>(b));
  }
  return result;
}

// The same as tensors of bytes: (number, tensor) of each.
py::list living_memory(const Recorder& recording) {
  py::list result;
  for (const int b : living_buffers(recording)) {
    Storage* const storage = recording.buffers[static_cast<size_t>(b)].made;
    const auto bytes = static_cast<int64_t>(storage->bytes);
    TensorRef tensor = make_tensor(retain(storage), Dtype::UInt8, Dims{bytes}, Dims{1}, 0);
    result.append(py::make_tuple(b, stolen(tensor.release_object())));
  }
  return result;
}

// The result for these tensors, or NotImplemented where the program does not fit them.
py::object replay(Program& program, const py::tuple& arguments) {
  std::vector<TensorObject*> tensors;
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments.ptr());
  if (program.is_running() || recorder() ||
      !program.accepts(&PyTuple_GET_ITEM(arguments.ptr(), 0), count, nullptr, tensors))
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  return stolen(program.run(tensors));
}

// Memory from before the recording that an instruction uses.
std::vector<int> existing_buffers(const Recorder& recording) {
  std::vector<int> result;
  for (size_t b = 0; b < recording.buffers.size(); ++b)
    if (recording.buffers[b].is_existing && recording.buffers[b].first >= 0) result.push_back(static_cast<int>(b));
  return result;
}

std::string first_use(const Recorder& recording, int buffer) {
  const int first = recording.buffers.at(static_cast<size_t>(buffer)).first;
  return first < 0 ? "" : place_of(recording.instructions[static_cast<size_t>(first)]);
}

py::list instructions_of(const Recorder& recording) {
  py::list result;
  for (const Instruction& instruction : recording.instructions) {
    const char* const name = instruction.op                                ? instruction.op->schema.name.c_str()
                             : instruction.kind == Instruction::Kind::Copy ? "copy"
                                                                           : "fill";
    result.append(py::make_tuple(name, instruction.file, instruction.line));
  }
  return result;
}

// add_input(tensor, pinned, parameter or None, is_argument)
void add_input(Program& program, py::handle object, bool is_pinned, py::handle parameter, bool is_argument) {
  TensorObject& tensor = *tensor_of(object);
  Input input;
  input.type = Py_TYPE(&tensor);
  input.dtype = tensor.dtype;
  input.sizes = tensor.sizes;
  input.strides = tensor.strides;
  input.device = tensor.device();
  input.requires_grad = requires_grad(&tensor);
  input.is_inference = tensor.inference;
  input.has_history = tensor.grad_fn != nullptr;
  input.is_argument = is_argument;
  input.is_view = tensor.base != nullptr;
  input.identity = &tensor;
  const auto first = std::ranges::find(program.inputs, &tensor, &Input::identity);
  if (is_argument && first != program.inputs.end()) input.same_as = static_cast<int>(first - program.inputs.begin());
  input.offset = tensor.offset * itemsize(tensor.dtype);
  input.buffer = program.recording().find(tensor.storage);
  if (is_pinned) input.pinned = shared(root_storage(tensor.storage));
  if (!parameter.is_none()) input.parameter = TensorRef::borrow(tensor_of(parameter));
  program.inputs.push_back(std::move(input));
}

// add_result(kind, tensor, input, node or None, parameter or None)
void add_result(Program& program, const std::string& from, py::handle object, int input, py::handle node,
                py::handle parameter) {
  TensorObject& tensor = *tensor_of(object);
  Produced one;
  one.dtype = tensor.dtype;
  one.sizes = tensor.sizes;
  one.strides = tensor.strides;
  one.offset = tensor.offset;
  one.input = input;
  if (from == "memory") {
    one.buffer = program.recording().find(tensor.storage);
    check(one.buffer >= 0, PyExc_ValueError, "a result has memory that the recording did not see");
  } else if (from == "object") {
    one.from = Produced::From::Object;
    one.object = Ref<>::borrow(object.ptr());
  } else if (from == "input") {
    one.from = Produced::From::Input;
  } else {
    check(from == "view", PyExc_ValueError, "results do not come from ", from);
    one.from = Produced::From::ViewOfInput;
    one.offset -= program.inputs.at(static_cast<size_t>(input)).offset / itemsize(tensor.dtype);
    program.recording().note_extent(program.recording().find(tensor.storage), tensor);
  }
  if (!node.is_none()) one.node = Ref<>::borrow(node.ptr());
  if (!parameter.is_none()) one.parameter = TensorRef::borrow(tensor_of(parameter));
  program.produced.push_back(std::move(one));
}

void set_trees(Program& program, const py::tuple& positional, const py::tuple& keywords, py::handle result) {
  for (const py::handle one : positional) program.arguments.positional.push_back(tree_from_object(one.ptr()));
  for (const py::handle one : keywords) {
    const auto pair = py::reinterpret_borrow<py::tuple>(one);
    program.arguments.keywords.emplace_back(Ref<>::borrow(py::object(pair[0]).ptr()),
                                            tree_from_object(py::object(pair[1]).ptr()));
  }
  program.result.root = tree_from_object(result.ptr());
}

// The first guard that does not hold, in words; None if all do.
py::object failed_guard(Program& program) {
  for (const std::shared_ptr<Guard>& guard : program.guards)
    if (!guard->holds()) return py::str(guard->description());
  return py::none();
}

PyObject* set_replaying(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  is_replaying = value == 1;
  Py_RETURN_NONE;
}

PyObject* is_recording(PyObject*, PyObject*) {
  return PyBool_FromLong(recorder() != nullptr);
}

PyObject* refuse_recording_function(PyObject*, PyObject* reason) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const char* characters = PyUnicode_AsUTF8(reason);
    if (!characters) throw PythonError();
    refuse_recording(characters);
    return Py_NewRef(Py_None);
  });
}

PyObject* record_live(PyObject*, PyObject* callable) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    if (Recorder* active = recorder()) active->note_live(callable);
    return Py_NewRef(Py_None);
  });
}

PyObject* note_backward(PyObject*, PyObject* edge) {
  if (Recorder* active = recorder()) active->freed_edges.push_back(Ref<>::borrow(edge));
  Py_RETURN_NONE;
}

// Guards may hold what leads to the program's own function, such as a module that has it.
void make_collectable(PyHeapTypeObject* heap_type) {
  PyTypeObject& type = heap_type->ht_type;
  type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return py::detail::is_holder_constructed(self) ? py::cast<Program&>(py::handle(self)).visit(visit, arg) : 0;
  };
  type.tp_clear = [](PyObject* self) {
    if (py::detail::is_holder_constructed(self)) py::cast<Program&>(py::handle(self)).clear();
    return 0;
  };
}

}  // namespace

std::shared_ptr<Program> program_from_object(PyObject* object) {
  check(py::isinstance<Program>(object), PyExc_TypeError, "expected a Program, but got ", Py_TYPE(object)->tp_name);
  return py::cast<std::shared_ptr<Program>>(py::handle(object));
}

PyMethodDef record_functions[] = {
    {"set_replaying", set_replaying, METH_O, "set_replaying(on)\n\nSet whether this thread replays programs."},
    {"is_recording", is_recording, METH_NOARGS, "Whether this thread records a program."},
    {"refuse_recording", refuse_recording_function, METH_O,
     "refuse_recording(reason)\n\nEnd this thread's recording, if there is one: what follows cannot be replayed."},
    {"record_live", record_live, METH_O,
     "record_live(callable)\n\nThe numbers of the kernel that ran last come from callable() in each replay: a tuple, "
     "of "
     "the scalars after its tensors."},
    {"note_backward", note_backward, METH_O,
     "note_backward(edge)\n\nA backward pass that frees the graph begins at this edge."},
    {nullptr, nullptr, 0, nullptr},
};

static void register_programs(py::module_& module) {
  using namespace py::literals;
  py::class_<Program, std::shared_ptr<Program>>(module, "Program", "A recording with planned memory, to replay.",
                                                py::custom_type_setup(make_collectable))
      .def(py::init<std::shared_ptr<Recorder>, bool>(), "recording"_a, "debug"_a)
      .def_property_readonly("recording", [](Program& program) { return program.shared_recording(); })
      .def("set_trees", set_trees)
      .def("add_input", add_input, "tensor"_a, "is_pinned"_a, "parameter"_a, "is_argument"_a = false)
      .def("add_result", add_result)
      .def(
          "add_guard",
          [](Program& program, std::shared_ptr<Guard> guard) { program.guards.push_back(std::move(guard)); }, "guard"_a)
      .def("clear_gradient",
           [](Program& program, py::handle parameter, bool is_late) {
             (is_late ? program.cleared_last : program.cleared).push_back(TensorRef::borrow(tensor_of(parameter)));
           })
      .def("finish", &Program::finish)
      .def("replay", replay, "arguments"_a, "The result, or NotImplemented if the program does not fit.")
      .def_property_readonly("is_running", &Program::is_running)
      .def("failed_guard", failed_guard)
      .def_readwrite("calls_left", &Program::calls_left)
      .def_property_readonly("size", &Program::size)
      .def_property_readonly("group_sizes", &Program::group_sizes, "How many operators run together tile by tile.")
      .def_property_readonly("compiled_sizes", &Program::compiled_sizes,
                             "How many of these the backend has compiled into functions. Compiles them.")
      .def_readwrite("is_exact", &Program::is_exact,
                     "Whether compiled operators give the bits of their kernels. Set before finish().")
      .def_property_readonly("planned_bytes", &Program::planned_bytes)
      .def_property_readonly("unplanned_bytes", &Program::unplanned_bytes);
}

void register_record(py::module_& module) {
  using namespace py::literals;
  py::class_<Recorder, std::shared_ptr<Recorder>>(module, "Recording", "What one thread's operators computed.")
      .def(py::init<>())
      .def("start", &Recorder::start, "Record this thread until stop().")
      .def("stop", &Recorder::stop)
      .def_property_readonly("reason", reason_of, "Why it cannot be replayed: (reason, file, line), or None.")
      .def_property_readonly("living", living_buffers, "Memory that was made in the recording and lives on.")
      .def("living_memory", living_memory, "What lives on, as (number, tensor of bytes).")
      .def_property_readonly("existing", existing_buffers, "Memory from before the recording that operators use.")
      .def_property_readonly("instructions", instructions_of, "(operator, file, line) of each call.")
      .def("lowered_instructions", lowered_instructions, "The calls of kernels with their arguments, as plain data.")
      .def("lowered_buffers", lowered_buffers, "The memory that they use, as plain data.")
      .def_property_readonly(
          "freed_edges",
          [](const Recorder& recording) {
            py::list edges;
            for (const Ref<>& edge : recording.freed_edges) edges.append(py::handle(edge.get()));
            return edges;
          },
          "Where backward passes began that have freed the graph.")
      .def("forget_edges", [](Recorder& recording) { recording.freed_edges.clear(); })
      .def(
          "find",
          [](const Recorder& recording, py::handle tensor) { return recording.find(tensor_of(tensor)->storage); },
          "tensor"_a, "The number of a tensor's memory; -1 if the recording did not see it.")
      .def(
          "register",
          [](Recorder& recording, py::handle tensor) { return recording.buffer_of(tensor_of(tensor)->storage); },
          "tensor"_a, "Know the memory of a tensor from before the recording; returns its number.")
      .def("is_written", [](const Recorder& recording,
                            int buffer) { return recording.buffers.at(static_cast<size_t>(buffer)).is_written; })
      .def("is_used", [](const Recorder& recording,
                         int buffer) { return recording.buffers.at(static_cast<size_t>(buffer)).first >= 0; })
      .def("is_existing", [](const Recorder& recording,
                             int buffer) { return recording.buffers.at(static_cast<size_t>(buffer)).is_existing; })
      .def("first_use", first_use, "buffer"_a, "The operator, file and line that used it first.")
      .def(
          "difference",
          [](const Recorder& a, const Recorder& b, const std::vector<std::tuple<int, int64_t, int64_t>>& given) {
            std::vector<ComparedInput> inputs;
            for (const auto& [buffer, in_a, in_b] : given) inputs.push_back({buffer, in_a, in_b});
            return difference(a, b, inputs);
          },
          "other"_a, "inputs"_a,
          "What differs, or an empty string. Of each argument's memory: its number, and where the argument begins in "
          "both, in bytes.");
  py::class_<Guard, std::shared_ptr<Guard>>(
      module, "Guard",
      "Guard(description)\n\nState as it is now, which a program needs: (\"items\", dict, ((key, value or missing), "
      "...), "
      "missing, size or -1), (\"list\", list, entries), (\"cell\", cell, contents), (\"tensor\", tensor, whether its "
      "gradient is None, or 2), (\"function\", function), (\"object\", object, its dict or None), (\"class\", class), "
      "(\"call\", function, its result, a name) or (\"modes\",).")
      .def(py::init([](py::handle description) { return guard_from_object(description.ptr()); }), "description"_a);
  register_programs(module);
}

}  // namespace candelabra
