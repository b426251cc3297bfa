// Helpers by which autograd functions build a node: its creation, and the edges to where gradients
// flow next.
#include <Python.h>

#include <structmember.h>

#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

PyTypeObject* node_type = nullptr;
// Offsets of a node's slots _sequence and _hooks.
Py_ssize_t sequence_offset = 0, hooks_offset = 0;
// Sequence numbers decrease, so a node's inputs have higher numbers than the node.
long next_number = 0;

PyObject* new_sequence() {
  return PyLong_FromLong(next_number--);
}

Py_ssize_t offset_of(PyObject* type, const char* name) {
  const Ref<> member = owned(PyObject_GetAttrString(type, name));
  check(Py_IS_TYPE(member.get(), &PyMemberDescr_Type), PyExc_TypeError, "set_node_type(): ", name, " is no slot");
  return reinterpret_cast<PyMemberDescrObject*>(member.get())->d_member->offset;
}

PyObject* set_node_type(PyObject*, PyObject* type) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(PyType_Check(type), PyExc_TypeError, "set_node_type() takes a type");
    sequence_offset = offset_of(type, "_sequence");
    hooks_offset = offset_of(type, "_hooks");
    Py_XSETREF(node_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
    return Py_NewRef(Py_None);
  });
}

PyObject*& slot_of(PyObject* node, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(node) + offset);
}

// Skips object.__new__ and __init__, which node classes do not override.
PyObject* new_node(PyObject*, PyObject* given) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(given);
  if (!node_type || !PyType_Check(given) || !PyType_IsSubtype(type, node_type)) {
    PyErr_SetString(PyExc_TypeError, "new_node() takes a type of nodes");
    return nullptr;
  }
  PyObject* node = type->tp_alloc(type, 0);
  PyObject* number = node ? new_sequence() : nullptr;
  if (!number) {
    Py_XDECREF(node);
    return nullptr;
  }
  slot_of(node, sequence_offset) = number;
  slot_of(node, hooks_offset) = Py_NewRef(Py_None);
  return node;
}

PyObject* edge_of(PyObject*, PyObject* argument) {
  if (!is_tensor(argument)) Py_RETURN_NONE;
  return tensor_edge(argument);
}

}  // namespace

PyMethodDef tape_functions[] = {
    {"set_node_type", set_node_type, METH_O,
     "set_node_type(type)\n\nSet the base class of all autograd nodes, which has slots _sequence and _hooks."},
    {"new_node", new_node, METH_O,
     "new_node(type)\n\nA new autograd node of this class, with a sequence number and without hooks."},
    {"next_sequence", [](PyObject*, PyObject*) { return new_sequence(); }, METH_NOARGS,
     "next_sequence()\n\nThe sequence number of the next autograd node: one less than the last."},
    {"edge_of", edge_of, METH_O,
     "edge_of(argument)\n\nThe edge that an argument's gradient flows along: a tensor's _edge, else None."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
