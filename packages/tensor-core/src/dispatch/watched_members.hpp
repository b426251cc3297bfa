// Attributes, methods and slots of Tensor that are in C: subclasses and modes may take them over.
// Each is called through a function that first compares the type of self.
#pragma once

#include <algorithm>

#include "dispatch/torch_function.hpp"

namespace candelabra {

// Change the tables that the type is created of.
void watch_attributes(PyGetSetDef* attributes);
void watch_methods(PyMethodDef* methods);

// A text as an argument of a template.
template <size_t size>
struct SlotName {
  char characters[size];
  constexpr SlotName(const char (&text)[size]) { std::copy_n(text, size, characters); }
};

// What a slot returns where an override has computed `object`; takes over its reference.
template <typename Result>
Result result_of_slot(PyObject* object, bool is_assignment) {
  if constexpr (std::is_same_v<Result, PyObject*>) {
    return object;
  } else {
    const Ref<> held(object);
    if (!object) return -1;
    if (is_assignment) return 0;
    return static_cast<Result>(std::is_same_v<Result, int> ? PyObject_IsTrue(object) : PyLong_AsSsize_t(object));
  }
}

template <auto function, SlotName name>
struct WatchedSlot;
template <typename Result, typename... Arguments, Result (*function)(Arguments...), SlotName name>
struct WatchedSlot<function, name> {
  static Result call(Arguments... arguments) {
    PyObject* const values[] = {arguments...};
    constexpr Py_ssize_t count = sizeof...(arguments);
    if (may_be_overridden(values[0]) && values[count - 1] && may_be_overridden(values, 1)) [[unlikely]] {
      if (const auto result = call_overrides_of_tensor(name.characters, nullptr, values, count, nullptr))
        return result_of_slot<Result>(*result, count == 3);
    }
    return function(arguments...);
  }
};

// The function for the slot of the type: `function`, unless the method `name` is taken over.
template <auto function, SlotName name>
void* watched_slot() {
  return reinterpret_cast<void*>(WatchedSlot<function, name>::call);
}

}  // namespace candelabra
