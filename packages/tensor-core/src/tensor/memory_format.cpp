// candelabra.memory_format: contiguous_format, channels_last, channels_last_3d, preserve_format.
#include <iterator>

#include "tensor/tensor.hpp"

namespace candelabra {

namespace {

struct MemoryFormatObject {
  PyObject_HEAD MemoryFormat value;
};

constexpr const char* format_names[] = {"contiguous_format", "channels_last", "preserve_format", "channels_last_3d"};
constexpr int format_count = static_cast<int>(std::size(format_names));
PyTypeObject* type = nullptr;
PyObject* objects[format_count];

const char* name_of(PyObject* self) {
  return format_names[static_cast<int>(reinterpret_cast<MemoryFormatObject*>(self)->value)];
}

PyMethodDef methods[] = {
    {"__reduce__", [](PyObject* self, PyObject*) { return PyUnicode_FromString(name_of(self)); }, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef attributes[] = {
    // pickle stores a memory format as the name of a global of this module.
    {"__module__", [](PyObject*, void*) { return PyUnicode_FromString("candelabra"); }, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("candelabra.%s", name_of(self));
}

PyType_Slot slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("The order of a tensor's elements in memory.")},
    {0, nullptr},
};
PyType_Spec spec = {"candelabra.memory_format", sizeof(MemoryFormatObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* memory_format_object(MemoryFormat format) {
  return objects[static_cast<int>(format)];
}
bool is_memory_format_object(PyObject* object) {
  return Py_TYPE(object) == type;
}

MemoryFormat memory_format_from_object(PyObject* object) {
  check(is_memory_format_object(object), PyExc_TypeError, "expected a candelabra.memory_format, not ",
        Py_TYPE(object)->tp_name);
  return reinterpret_cast<MemoryFormatObject*>(object)->value;
}

void check_rank_of_format(MemoryFormat format, std::span<const int64_t> sizes) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return;
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check(sizes.size() == rank, PyExc_RuntimeError, "required rank ", rank, " tensor to use ",
        format_names[static_cast<int>(format)], " format, but got shape ", shown(sizes));
}

bool init_memory_format(PyObject* module) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type || PyModule_AddObjectRef(module, "memory_format", reinterpret_cast<PyObject*>(type)) < 0) return false;
  for (int i = 0; i < format_count; ++i) {
    MemoryFormatObject* object = PyObject_New(MemoryFormatObject, type);
    if (!object) return false;
    object->value = static_cast<MemoryFormat>(i);
    objects[i] = reinterpret_cast<PyObject*>(object);
    if (PyModule_AddObjectRef(module, format_names[i], objects[i]) < 0) return false;
  }
  return true;
}

}  // namespace candelabra
