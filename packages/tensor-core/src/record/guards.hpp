// What must be as it was when a program was recorded: the tree of arguments, and the state that the
// recorded code reads.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.hpp"

namespace candelabra {

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
};
// From the form that Python has: (kind, payload...). Throws TypeError.
Tree tree_from_object(PyObject* description);

struct ArgumentTree {
  std::vector<Tree> positional;
  std::vector<std::pair<Ref<>, Tree>> keywords;
  // Appends the tensors in order; false where the arguments have another form.
  bool matches(PyObject* const* values, Py_ssize_t count, PyObject* names, std::vector<TensorObject*>& tensors) const;
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
};

// (kind, ...), see record_functions.cpp. Throws TypeError.
std::unique_ptr<Guard> guard_from_object(PyObject* description);

}  // namespace candelabra
