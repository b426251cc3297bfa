// len(tensor) and element in tensor.
#include "interop/interop.hpp"
#include "operators/operator.hpp"

namespace candelabra {

Py_ssize_t tensor_len(PyObject* self) {
  return guarded<>(Py_ssize_t{-1}, [&] {
    check(as_tensor(self)->ndim() > 0, PyExc_TypeError, "len() of a 0-d tensor");
    return static_cast<Py_ssize_t>(as_tensor(self)->sizes[0]);
  });
}

int tensor_contains(PyObject* self, PyObject* element) {
  return guarded<>(-1, [&] {
    check(is_tensor(element) || is_number(element), PyExc_RuntimeError,
          "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class '", Py_TYPE(element)->tp_name,
          "'>.");
    static Operator &equal = required_operator("eq"), &any = required_operator("any");
    const Ref<> matches = call_operator(equal, {self, element});
    const Ref<> found = call_operator(any, {matches.get()});
    return tensor_bool(found.get());
  });
}

}  // namespace candelabra
