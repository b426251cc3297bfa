#include "python/errors.hpp"

#include <new>
#include <string_view>

#include "candelabra/accelerator.h"
#include "python/bindings.hpp"
#include "python/gil.hpp"

namespace candelabra {

PyObject* out_of_memory_error = nullptr;
PyObject* backend_error = nullptr;
PyObject* backend_version_error = nullptr;

namespace {

PyObject* accelerator_error = nullptr;

bool belongs_to(std::string_view module, std::string_view package) {
  return module.starts_with(package) && (module.size() == package.size() || module[package.size()] == '.');
}

// Modules whose frames stand between the line of the program and that of a warning: Candelabra's,
// its backends', and what wraps calls.
bool is_internal(std::string_view module) {
  return belongs_to(module, "candelabra") || module.starts_with("candelabra_backend_") ||
         belongs_to(module, "contextlib") || belongs_to(module, "functools");
}

// The stack level, for warnings, of the innermost Python frame of the program. Frames of importing
// are not counted, as in `warnings`. Where there is no such frame, that of the innermost one.
Py_ssize_t user_stack_level() {
  Py_ssize_t level = 1;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    const Ref<> globals = owned(PyFrame_GetGlobals(frame));
    PyObject* name = PyDict_GetItemString(globals.get(), "__name__");
    const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    const std::string_view module = text ? text : "";
    const bool importing = belongs_to(module, "importlib");
    if (!importing && !is_internal(module)) {
      Py_DECREF(frame);
      return level;
    }
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
    level += !importing;
  }
  return 1;
}

void warn_as(PyObject* category, const std::string& message) {
  if (PyErr_WarnEx(category, message.c_str(), user_stack_level()) < 0) throw PythonError();
}

}  // namespace

void warn(const std::string& message) {
  warn_as(PyExc_UserWarning, message);
}

void register_errors(py::module_& module) {
  using namespace py::literals;
  auto add = [&](const char* name, const char* doc, PyObject* base, PyObject*& slot) {
    const std::string qualified = std::string("candelabra.") + name;
    slot = owned(PyErr_NewExceptionWithDoc(qualified.c_str(), doc, base, nullptr)).release();
    module.add_object(name, slot);
  };
  add("OutOfMemoryError", "A device could not allocate the requested memory.", PyExc_RuntimeError, out_of_memory_error);
  add("AcceleratorError", "A device or its driver has failed.", PyExc_RuntimeError, accelerator_error);
  add("BackendError", "A device type has no backend, or its backend could not be loaded.", PyExc_RuntimeError,
      backend_error);
  add("BackendVersionError", "A backend was built for another major version of the ABI.", backend_error,
      backend_version_error);
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (...) {
      set_python_error();
    }
  });
  module.def(
      "warn",
      [](const std::string& message, py::object category) {
        check(PyExceptionClass_Check(category.ptr()) && PyObject_IsSubclass(category.ptr(), PyExc_Warning) == 1,
              PyExc_TypeError, "warn(): category must be a subclass of Warning");
        warn_as(category.ptr(), message);
      },
      "message"_a, "category"_a = py::reinterpret_borrow<py::object>(PyExc_UserWarning),
      "Issue a warning at the line of the program that called Candelabra.");
}

PyObject* exception_of_status(int32_t status) {
  switch (status) {
    case CB_OUT_OF_MEMORY:
      return out_of_memory_error;
    case CB_ACCELERATOR_ERROR:
    case CB_DEVICE_LOST:
      return accelerator_error;
    case CB_VALUE_ERROR:
      return PyExc_ValueError;
    case CB_INDEX_ERROR:
      return PyExc_IndexError;
    case CB_TYPE_ERROR:
      return PyExc_TypeError;
    case CB_NOT_IMPLEMENTED:
      return PyExc_NotImplementedError;
    default:
      return PyExc_RuntimeError;
  }
}

namespace {

// Messages of backends may have any bytes.
PyObject* decoded(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

void set_error(const Error& error) noexcept {
  PyObject* message = decoded(error.message);
  if (!message) return;
  PyErr_SetObject(error.type, message);
  Py_DECREF(message);
  if (!error.note.empty()) note_python_error(error.note);
}

}  // namespace

void note_python_error(const std::string& text) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* note = decoded(text);
  PyObject* added = note ? PyObject_CallMethod(value, "add_note", "O", note) : nullptr;
  if (!added) PyErr_Clear();  // the error itself matters more than its note
  Py_XDECREF(added);
  Py_XDECREF(note);
  PyErr_Restore(type, value, traceback);
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a call failed without saying why");
  } catch (const Error& error) {
    set_error(error);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {  // such as py::cast_error
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    stay_if_thread_ends();
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception");
  }
}

}  // namespace candelabra
