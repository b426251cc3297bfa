// out= arguments: their checks, and copying a separately computed result to them.
#pragma once

#include <string_view>

#include "tensor/tensor.hpp"

namespace candelabra {

// How a tensor given as out= may share memory with the inputs.
enum class OutMemory : uint8_t { Any, Whole /* only if it is the same view */, Apart };

// The rules of an operator or a function, as the catalogue declares them.
bool needs_exact_out(std::string_view operator_name);
OutMemory out_memory_of(std::string_view operator_name);

// Throws if PyTorch rejects a tensor of this dtype as out= of this operator or function.
void check_out_dtype(const char* operator_name, Dtype result, Dtype out);
// Throws if out= shares memory with an input in a way that the rule forbids.
void check_out_memory(const char* operator_name, OutMemory rule, const TensorObject& out, const TensorObject& input);

// Resizes out= like a separately computed result, and copies the values to it.
Ref<> give_to_out(const char* operator_name, PyObject* out, PyObject* result);
// The same for several results. All are checked before the first is written.
Ref<> give_to_outs(const char* operator_name, PyObject* outs, PyObject* results);

bool init_out_arguments(PyObject* module);

}  // namespace candelabra
