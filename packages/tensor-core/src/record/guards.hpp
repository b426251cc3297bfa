// What must be as it was when a program was recorded: the tree of arguments, and the state that the
// recorded code reads.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.hpp"

namespace candelabra {

// For the collector of cycles: visits each reference until a visit returns another number than 0.
template <typename... T>
int visit_references(visitproc visit, void* arg, const Ref<T>&... references) {
  int result = 0;
  const auto one = [&](PyObject* object) {
    if (object && result == 0) result = visit(object, arg);
  };
  (one(reinterpret_cast<PyObject*>(references.get())), ...);
  return result;
}
// The same, for each element of a range: visit_one(element) returns the number.
template <typename Range, typename VisitOne>
int visit_each(const Range& range, VisitOne&& visit_one) {
  for (const auto& element : range)
    if (const int result = visit_one(element)) return result;
  return 0;
}

// Whether two objects are the same or, for numbers, strings and tuples of these, equal in type and
// value.
bool is_same_value(PyObject* a, PyObject* b);

// A tree of containers. Its leaves are tensors, by number, and other objects.
struct Tree {
  enum class Kind : uint8_t { Tensor, Value, Tuple, List, Dict };
  Kind kind = Kind::Value;
  int tensor = -1;
  Ref<> object;  // of Value: itself; of Tuple: its type
  std::vector<Tree> children;
  std::vector<Ref<>> keys;  // of Dict
  int visit(visitproc visit, void* arg) const;
};
// From the form that Python has: (kind, payload...). Throws TypeError.
Tree tree_from_object(PyObject* description);

struct ArgumentTree {
  std::vector<Tree> positional;
  std::vector<std::pair<Ref<>, Tree>> keywords;
  // Appends the tensors in order; false where the arguments have another form.
  bool matches(PyObject* const* values, Py_ssize_t count, PyObject* names, std::vector<TensorObject*>& tensors) const;
  int visit(visitproc visit, void* arg) const;
};

struct ResultTree {
  Tree root;
  // New reference; throws.
  PyObject* build(std::vector<Ref<>>& tensors) const;
};

class Guard {
 public:
  virtual ~Guard() = default;
  virtual bool holds() = 0;
  virtual std::string description() const = 0;
  // Visits the references to Python objects that the guard holds.
  virtual int visit(visitproc, void*) const { return 0; }
};

// (kind, ...), see record_functions.cpp. Throws TypeError.
std::shared_ptr<Guard> guard_from_object(PyObject* description);

}  // namespace candelabra
