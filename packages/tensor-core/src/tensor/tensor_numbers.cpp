// Python's number slots of Tensor, which call the operators directly.
#include <array>

#include "dispatch/torch_function.hpp"
#include "interop/interop.hpp"
#include "operators/operator.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// The operators, looked up by name on first use. matmul is not in the catalogue: it is a function
// of candelabra.composite.
enum Slot {
  Add,
  Sub,
  Mul,
  Div,
  FloorDivide,
  Remainder,
  Pow,
  And,
  Or,
  Xor,
  LeftShift,
  RightShift,
  Neg,
  Abs,
  Not,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  MatrixProduct,
  SlotCount
};
constexpr const char* names[SlotCount] = {"add",
                                          "sub",
                                          "mul",
                                          "div",
                                          "floor_divide",
                                          "remainder",
                                          "pow",
                                          "bitwise_and",
                                          "bitwise_or",
                                          "bitwise_xor",
                                          "bitwise_left_shift",
                                          "bitwise_right_shift",
                                          "neg",
                                          "abs",
                                          "bitwise_not",
                                          "eq",
                                          "ne",
                                          "lt",
                                          "le",
                                          "gt",
                                          "ge",
                                          "mm"};
std::array<Operator*, SlotCount> operators{};

Operator* operator_of(Slot slot) {
  if (!operators[slot]) [[unlikely]] {
    operators[slot] = find_operator(names[slot]);
    if (!operators[slot])
      PyErr_Format(PyExc_RuntimeError, "the operator %s is not declared: import candelabra first", names[slot]);
  }
  return operators[slot];
}

// Whether a slot handles this operand. Other types get their chance through NotImplemented.
bool is_operand(PyObject* object) {
  return is_tensor(object) || is_number(object);
}

PyObject* call(Operator* op, PyObject* const* arguments, size_t count) {
  return op ? op->vectorcall(reinterpret_cast<PyObject*>(op), arguments, count, nullptr) : nullptr;
}

PyObject* binary(Slot slot, PyObject* a, PyObject* b) {
  PyObject* arguments[] = {a, b};
  if ((!is_operand(a) || !is_operand(b)) && !may_be_overridden(arguments, 2)) Py_RETURN_NOTIMPLEMENTED;
  return call(operator_of(slot), arguments, 2);
}

PyObject* inplace_binary(Slot slot, PyObject* a, PyObject* b) {
  Operator* op = operator_of(slot);
  if (!op) return nullptr;
  PyObject* arguments[] = {a, b};
  if (!is_operand(b) && !may_be_overridden(arguments, 2)) Py_RETURN_NOTIMPLEMENTED;
  return call(op->inplace, arguments, 2);
}

PyObject* unary(Slot slot, PyObject* a) {
  PyObject* arguments[] = {a};
  return call(operator_of(slot), arguments, 1);
}

// `tensor == array` compares with the values of the array, as in PyTorch; False for an array whose
// dtype no tensor has.
PyObject* equal(PyObject* a, PyObject* b) {
  if (!is_numpy_array(b) || overrides_functions(a)) return binary(Eq, a, b);
  PyObject* made = guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const TensorRef values = tensor_from_numpy(b);
    return binary(Eq, a, as_object(values.get()));
  });
  if (made || !PyErr_ExceptionMatches(PyExc_TypeError)) return made;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* call_method(const char* name, PyObject* self, PyObject* other) {
  return PyObject_CallMethod(self, name, "O", other);
}

}  // namespace

PyObject* tensor_compare(PyObject* a, PyObject* b, int operation) {
  switch (operation) {
    case Py_EQ:
      return equal(a, b);
    case Py_NE:
      return binary(Ne, a, b);
    case Py_LT:
      return binary(Lt, a, b);
    case Py_LE:
      return binary(Le, a, b);
    case Py_GT:
      return binary(Gt, a, b);
    default:
      return binary(Ge, a, b);
  }
}

namespace number_slots {

PyObject* add(PyObject* a, PyObject* b) {
  return binary(Add, a, b);
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return binary(Sub, a, b);
}
PyObject* multiply(PyObject* a, PyObject* b) {
  return binary(Mul, a, b);
}
PyObject* true_divide(PyObject* a, PyObject* b) {
  if (is_numpy_array(a) && !overrides_functions(b)) {
    // PyTorch divides what is no tensor by the reciprocal; NumPy then multiplies.
    const Ref<> reciprocal(PyObject_CallMethod(b, "reciprocal", nullptr));
    return reciprocal ? PyNumber_Multiply(reciprocal.get(), a) : nullptr;
  }
  return binary(Div, a, b);
}
PyObject* floor_divide(PyObject* a, PyObject* b) {
  return binary(FloorDivide, a, b);
}
PyObject* remainder(PyObject* a, PyObject* b) {
  return binary(Remainder, a, b);
}
PyObject* bitwise_and(PyObject* a, PyObject* b) {
  return binary(And, a, b);
}
PyObject* bitwise_or(PyObject* a, PyObject* b) {
  return binary(Or, a, b);
}
PyObject* bitwise_xor(PyObject* a, PyObject* b) {
  return binary(Xor, a, b);
}
PyObject* left_shift(PyObject* a, PyObject* b) {
  return binary(LeftShift, a, b);
}
PyObject* right_shift(PyObject* a, PyObject* b) {
  return binary(RightShift, a, b);
}
PyObject* negative(PyObject* a) {
  return unary(Neg, a);
}
PyObject* positive(PyObject* a) {
  // candelabra.positive does the same: it returns the tensor itself, as in PyTorch.
  if (as_tensor(a)->dtype == Dtype::Bool) {
    PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return nullptr;
  }
  return Py_NewRef(a);
}
PyObject* absolute(PyObject* a) {
  return unary(Abs, a);
}
PyObject* invert(PyObject* a) {
  if (!is_integral(as_tensor(a)->dtype) && !overrides_functions(a)) {
    PyErr_Format(PyExc_TypeError,
                 "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on %s",
                 name(as_tensor(a)->dtype));
    return nullptr;
  }
  return unary(Not, a);
}
PyObject* inplace_add(PyObject* a, PyObject* b) {
  return inplace_binary(Add, a, b);
}
PyObject* inplace_subtract(PyObject* a, PyObject* b) {
  return inplace_binary(Sub, a, b);
}
PyObject* inplace_multiply(PyObject* a, PyObject* b) {
  return inplace_binary(Mul, a, b);
}
PyObject* inplace_true_divide(PyObject* a, PyObject* b) {
  return inplace_binary(Div, a, b);
}
PyObject* inplace_floor_divide(PyObject* a, PyObject* b) {
  return inplace_binary(FloorDivide, a, b);
}
PyObject* inplace_remainder(PyObject* a, PyObject* b) {
  return inplace_binary(Remainder, a, b);
}
PyObject* inplace_and(PyObject* a, PyObject* b) {
  return inplace_binary(And, a, b);
}
PyObject* inplace_or(PyObject* a, PyObject* b) {
  return inplace_binary(Or, a, b);
}
PyObject* inplace_xor(PyObject* a, PyObject* b) {
  return inplace_binary(Xor, a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow(): the third argument, a modulus, is not supported for tensors");
    return nullptr;
  }
  return binary(Pow, a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return power(a, b, modulus);
  return inplace_binary(Pow, a, b);
}

PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
  if (as_tensor(a)->ndim() == 2 && as_tensor(b)->ndim() == 2) return binary(MatrixProduct, a, b);
  return call_method("matmul", a, b);
}

}  // namespace number_slots
}  // namespace candelabra
