// What the shape rules use of the core beside themselves. In the core these functions change a call
// before its kernel runs, by copies and conversions. In a program of kernel calls that has happened
// already, so that a call which still needs it is refused.
#include "device/streams.hpp"
#include "operators/operator.hpp"
#include "shapes/indexing_overlapping.hpp"

namespace {

PyTypeObject exception_type{"exception"};
PyObject exceptions[5] = {
    {&exception_type}, {&exception_type}, {&exception_type}, {&exception_type}, {&exception_type}};

}  // namespace

PyObject* const PyExc_IndexError = &exceptions[0];
PyObject* const PyExc_NotImplementedError = &exceptions[1];
PyObject* const PyExc_RuntimeError = &exceptions[2];
PyObject* const PyExc_TypeError = &exceptions[3];
PyObject* const PyExc_ValueError = &exceptions[4];

namespace candelabra {

namespace {

[[noreturn]] void refuse(const char* needed) {
  raise(PyExc_ValueError, "an argument is not as its kernel takes it: it needs ", needed);
}

}  // namespace

TensorRef convert_dtype(TensorObject*, Dtype dtype) {
  refuse(text("the dtype ", name(dtype)).c_str());
}
TensorRef clone(TensorObject*, MemoryFormat) {
  refuse("another memory format");
}
TensorRef contiguous(TensorObject*) {
  refuse("contiguous strides");
}
TensorRef empty_strided(std::span<const int64_t>, std::span<const int64_t>, Dtype, Device) {
  refuse("the strides of another");
}
TensorRef make_view(TensorObject*, Dims, Dims, int64_t) {
  refuse("other sizes");
}
void copy_into(TensorObject*, TensorObject*) {
  refuse("a copy");
}
TensorRef to_device(TensorObject*, Device) {
  refuse("another device");
}
DeviceType& device_type(int) {
  refuse("another device");
}
bool copy_as_bytes(TensorObject*, TensorObject*, bool) {
  return false;
}

Operator* find_operator(std::string_view) {
  return nullptr;
}
Ref<> call_operator(Operator&, std::initializer_list<PyObject*>) {
  refuse("the indices of its true elements");
}
// A kernel never sees a self that overlaps itself: the outputs of calls are checked.
bool shapes::write_overlapping(Call&, const char*, std::initializer_list<int>, int) {
  return false;
}

void warn(const std::string&) {}
std::string to_text(Device) {
  return "the device of the program";
}

}  // namespace candelabra
