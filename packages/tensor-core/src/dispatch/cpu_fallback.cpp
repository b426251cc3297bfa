#include "dispatch/cpu_fallback.hpp"

#include <iterator>

#include "operators/operator.hpp"

namespace candelabra {

Ref<> compute_on_cpu(Operator& op, PyObject* values, PyObject* generator_or_null, Device device) {
  static constinit LookedUpOnce fallback;
  PyObject* const function = fallback.get([] {
    const Ref<> module = owned(PyImport_ImportModule("candelabra.backends.fallback"));
    return owned(PyObject_GetAttrString(module.get(), "run"));
  });
  const Ref<> target = owned(device_object(device));
  PyObject* arguments[] = {reinterpret_cast<PyObject*>(&op), values, generator_or_null ? generator_or_null : Py_None,
                           target.get()};
  const NoGrad no_grad;
  return owned(PyObject_Vectorcall(function, arguments, std::size(arguments), nullptr));
}

}  // namespace candelabra
