#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "dispatch/watched_members.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// ---- attributes

struct Attribute {
  const char* name;
  getter get;
  setter set;
  void* closure;
};

PyObject* get_attribute(PyObject* self, void* closure) {
  const Attribute& attribute = *static_cast<const Attribute*>(closure);
  if (may_be_overridden(self)) [[unlikely]] {
    if (may_be_overridden(&self, 1)) {
      if (const auto result = call_overrides_of_tensor(attribute.name, "__get__", &self, 1, nullptr)) return *result;
    }
  }
  return attribute.get(self, attribute.closure);
}

int set_attribute(PyObject* self, PyObject* value, void* closure) {
  const Attribute& attribute = *static_cast<const Attribute*>(closure);
  if (value && may_be_overridden(self)) [[unlikely]] {
    PyObject* const arguments[] = {self, value};
    if (may_be_overridden(&self, 1)) {
      if (const auto result = call_overrides_of_tensor(attribute.name, "__set__", arguments, 2, nullptr)) {
        Py_XDECREF(*result);
        return *result ? 0 : -1;
      }
    }
  }
  return attribute.set(self, value, attribute.closure);
}

// ---- methods

constexpr size_t most_methods = 64;
std::array<PyMethodDef, most_methods> methods;

// Asks the overrides of a call of method number i.
std::optional<PyObject*> ask(size_t i, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  if (!may_be_overridden(arguments, count + (names ? PyTuple_GET_SIZE(names) : 0))) return std::nullopt;
  return call_overrides_of_tensor(methods[i].ml_name, nullptr, arguments, count, names);
}

template <size_t i>
PyObject* call_plain(PyObject* self, PyObject* argument) {
  if (may_be_overridden(self)) [[unlikely]] {
    PyObject* const arguments[] = {self, argument};
    if (const auto result = ask(i, arguments, argument ? 2 : 1, nullptr)) return *result;
  }
  return methods[i].ml_meth(self, argument);
}

template <size_t i>
PyObject* call_fast(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  if (may_be_overridden(self)) [[unlikely]] {
    const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
    std::vector<PyObject*> values{self};
    values.insert(values.end(), arguments, arguments + all);
    if (const auto result = ask(i, values.data(), count + 1, names)) return *result;
  }
  const auto function = reinterpret_cast<void (*)()>(methods[i].ml_meth);
  if (methods[i].ml_flags & METH_KEYWORDS)
    return reinterpret_cast<_PyCFunctionFastWithKeywords>(function)(self, arguments, count, names);
  return reinterpret_cast<_PyCFunctionFast>(function)(self, arguments, count);
}

template <size_t i>
PyObject* call_with_tuple(PyObject* self, PyObject* arguments, PyObject* keywords) {
  if (may_be_overridden(self)) [[unlikely]] {
    std::vector<PyObject*> values{self};
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(arguments); ++k) values.push_back(PyTuple_GET_ITEM(arguments, k));
    const auto count = static_cast<Py_ssize_t>(values.size());
    const Ref<> names(keywords ? PySequence_Tuple(keywords) : PyTuple_New(0));
    if (!names) return nullptr;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names.get()); ++k)
      values.push_back(PyDict_GetItem(keywords, PyTuple_GET_ITEM(names.get(), k)));
    if (const auto result = ask(i, values.data(), count, names.get())) return *result;
  }
  const auto function = reinterpret_cast<void (*)()>(methods[i].ml_meth);
  if (methods[i].ml_flags & METH_KEYWORDS)
    return reinterpret_cast<PyCFunctionWithKeywords>(function)(self, arguments, keywords);
  return methods[i].ml_meth(self, arguments);
}

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

struct Callers {
  PyCFunction plain, fast, with_tuple;
};

template <size_t... i>
constexpr std::array<Callers, sizeof...(i)> all_callers(std::index_sequence<i...>) {
  return {Callers{as_method(call_plain<i>), as_method(call_fast<i>), as_method(call_with_tuple<i>)}...};
}

// Methods of the core's own begin with one underscore; PyTorch has this one too.
bool is_public(const char* name) {
  if (std::strcmp(name, "_is_view") == 0) return true;
  return name[0] != '_' || (name[1] == '_' && std::strcmp(name, "__torch_function__") != 0);
}

}  // namespace

void watch_attributes(PyGetSetDef* attributes) {
  static std::deque<Attribute> watched;  // a deque does not move them
  for (PyGetSetDef* at = attributes; at->name; ++at) {
    if (!is_public(at->name) && std::strcmp(at->name, "_base") != 0 && std::strcmp(at->name, "_version") != 0) continue;
    if (std::strcmp(at->name, "__dict__") == 0) continue;
    Attribute& attribute = watched.emplace_back(Attribute{at->name, at->get, at->set, at->closure});
    at->get = get_attribute;
    if (at->set) at->set = set_attribute;
    at->closure = &attribute;
  }
}

void watch_methods(PyMethodDef* table) {
  constexpr auto callers = std::make_index_sequence<most_methods>();
  static const auto functions = all_callers(callers);
  for (size_t i = 0; table[i].ml_name; ++i) {
    methods[i] = table[i];
    if (!is_public(table[i].ml_name) || table[i].ml_flags & (METH_STATIC | METH_CLASS)) continue;
    const int kind = table[i].ml_flags & (METH_NOARGS | METH_O | METH_FASTCALL | METH_VARARGS);
    table[i].ml_meth = kind == METH_FASTCALL  ? functions[i].fast
                       : kind == METH_VARARGS ? functions[i].with_tuple
                                              : functions[i].plain;
  }
}

}  // namespace candelabra
