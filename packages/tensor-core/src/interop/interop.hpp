// Interoperation of tensors with Python: data conversion, NumPy, DLPack, the buffer protocol,
// numbers, Size.
#pragma once

#include <Python.h>

#include <optional>
#include <span>

#include "tensor/tensor.hpp"

namespace candelabra {

// Functions of the module. Each list ends with an empty entry.
extern PyMethodDef data_functions[];    // tensor_from_data(data, dtype, device), tolist(tensor)
extern PyMethodDef numpy_functions[];   // from_numpy(array)
extern PyMethodDef random_functions[];  // manual_seed(seed), default_generator(device)

// Methods of Tensor: item, tolist, numpy, __array__, __dlpack__, __dlpack_device__.
extern PyMethodDef interop_methods[];

// Slots of Tensor.
int tensor_bool(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_complex(PyObject* self, PyObject*);  // the method __complex__
PyObject* tensor_index(PyObject* self);
Py_ssize_t tensor_len(PyObject* self);
PyObject* tensor_iter(PyObject* self);
int tensor_contains(PyObject* self, PyObject* element);
int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags);
void tensor_releasebuffer(PyObject* self, Py_buffer* view);

// A new candelabra.Size: new reference; throws.
PyObject* size_object(std::span<const int64_t> sizes);
// The Size of a tensor, which caches it: new reference; throws.
PyObject* shape_object(TensorObject& tensor);
bool is_size_object(PyObject* object);
bool init_size(PyObject* module);

// A device with host memory: the default device if it has it, else a loaded one, else the first
// that can be loaded.
Device host_device();
// Waits until the work queued on this device is done. Returns at once if its kernels are
// synchronous.
void wait_for(Device device);
// Copy bytes between host memory and a storage; complete on return.
void copy_bytes_to_host(void* destination, Position source, size_t bytes);
void copy_bytes_from_host(Position destination, const void* source, size_t bytes);
// On one device.
void copy_bytes_within(Position destination, Position source, size_t bytes);
// Where element 0 of a tensor lies.
inline Position position_of(const TensorObject& tensor) {
  return {*tensor.storage, static_cast<uint64_t>(tensor.offset * itemsize(tensor.dtype))};
}

// Copies the bytes if both tensors are dense with the same layout. Returns whether it did.
bool copy_as_bytes(TensorObject* destination, TensorObject* source);

// Implements candelabra.tensor: accepts numbers, nested sequences, NumPy arrays and tensors. Infers
// the dtype if none is given.
TensorRef tensor_from_data(PyObject* data, std::optional<Dtype> dtype, std::optional<Device> device);
// Nested lists of Python numbers, or one number: new reference; throws.
PyObject* nested_list(TensorObject* self);
// A 0-dim tensor that holds this number.
TensorRef number_tensor(const cb_scalar& number, Dtype dtype, Device device);

// Whether the object is a NumPy array, subclasses included. Does not import NumPy.
bool is_numpy_array(PyObject* object);
bool is_numpy_scalar(PyObject* object);
// A tensor that shares the memory of a NumPy array (or of any object with __array_struct__).
TensorRef tensor_from_numpy(PyObject* array);
// Copies a NumPy array with any strides to this device.
TensorRef copy_of_numpy(PyObject* array, Device device);

// A tensor whose class computes operators on others has no memory to read.
void refuse_wrapper_subclass(TensorObject* tensor, const char* method);

// The methods in interop_methods that are in files of their own.
PyObject* tensor_numpy(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_array(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);

}  // namespace candelabra
