// Counts the edges of a graph that end at leaves with hooks: after the last one, the gradient of
// such a leaf is complete.
#include <Python.h>

#include <structmember.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// A class of nodes that has its edges in a slot, and says so by its function all_edges. What
// overrides the function is asked instead.
struct EdgeSlot {
  PyTypeObject* type;
  PyObject* all_edges;
  Py_ssize_t offset;
  bool has_several;  // the slot has a tuple of edges
};
std::vector<EdgeSlot> edge_slots;

InternedOnce& all_edges_name() {
  static constinit InternedOnce name("all_edges");
  return name;
}

PyObject* set_edge_slot(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(count == 3 && PyType_Check(arguments[0]) && PyBool_Check(arguments[2]), PyExc_TypeError,
          "set_edge_slot(type, name, has_several)");
    const Ref<> member = owned(PyObject_GetAttr(arguments[0], arguments[1]));
    check(Py_IS_TYPE(member.get(), &PyMemberDescr_Type), PyExc_TypeError,
          "set_edge_slot(): the name is that of no slot");
    Ref<> function = owned(PyObject_GetAttr(arguments[0], all_edges_name().get()));
    edge_slots.push_back({reinterpret_cast<PyTypeObject*>(Py_NewRef(arguments[0])), function.release(),
                          reinterpret_cast<PyMemberDescrObject*>(member.get())->d_member->offset,
                          arguments[2] == Py_True});
    return Py_NewRef(Py_None);
  });
}

// The slot of a node; null if all_edges has to be asked.
const EdgeSlot* slot_of(PyObject* node) {
  PyTypeObject* const type = Py_TYPE(node);
  const Ref<> function = owned(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), all_edges_name().get()));
  for (const EdgeSlot& one : edge_slots)
    if (one.all_edges == function.get() && PyType_IsSubtype(type, one.type)) return &one;
  return nullptr;
}

class EdgeCount {
 public:
  void add_node(PyObject* node) {
    if (seen_.insert(node).second) pending_.push_back(Ref<>::borrow(node));
  }

  void run() {
    while (!pending_.empty()) {
      const Ref<> node = std::move(pending_.back());
      pending_.pop_back();
      const EdgeSlot* const slot = slot_of(node.get());
      if (!slot) {
        follow_all(owned(PyObject_CallMethodNoArgs(node.get(), all_edges_name().get())));
        continue;
      }
      PyObject* const value = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(node.get()) + slot->offset);
      if (!value) continue;
      if (slot->has_several) {
        follow_all(Ref<>::borrow(value));
      } else {
        follow(value);
      }
    }
  }

  Ref<> counts() const {
    Ref<> dict = owned(PyDict_New());
    for (const auto& [leaf, count] : counts_) {
      const Ref<> key = owned(PyLong_FromVoidPtr(leaf)), value = owned(PyLong_FromLong(count));
      if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) throw PythonError();
    }
    return dict;
  }

 private:
  void follow_all(const Ref<>& edges) {
    const Ref<> sequence = owned(PySequence_Fast(edges.get(), "the edges of a node have to be a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i)
      follow(PySequence_Fast_GET_ITEM(sequence.get(), i));
  }

  void follow(PyObject* edge) {
    if (edge == Py_None) return;
    if (!is_tensor(edge)) return add_node(PyTuple_Check(edge) ? PyTuple_GET_ITEM(edge, 0) : edge);
    if (as_tensor(edge)->hooks) ++counts_[edge];
  }

  std::vector<Ref<>> pending_;
  // The graph keeps its nodes and leaves alive.
  std::unordered_set<PyObject*> seen_;
  std::unordered_map<PyObject*, long> counts_;
};

PyObject* count_leaf_edges(PyObject*, PyObject* nodes) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(PyList_Check(nodes), PyExc_TypeError, "count_leaf_edges() takes a list of nodes");
    EdgeCount count;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); ++i) count.add_node(PyList_GET_ITEM(nodes, i));
    count.run();
    return count.counts().release();
  });
}

}  // namespace

PyMethodDef leaf_edge_functions[] = {
    {"set_edge_slot", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_edge_slot)), METH_FASTCALL,
     "set_edge_slot(type, name, has_several)\n\nSet the slot in which the nodes of a class have their edge, or a tuple "
     "of their edges: what their method all_edges returns."},
    {"count_leaf_edges", count_leaf_edges, METH_O,
     "count_leaf_edges(nodes)\n\nBy id of a leaf with hooks: the number of edges to it in the graphs of these nodes."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
