// out=: what may be given, and how a result that was computed apart gets there.
#pragma once

#include <string_view>

#include "tensor.hpp"

namespace candelabra {

// What memory a tensor given as out= may share with the inputs.
enum class OutMemory : uint8_t { Any, Whole /* the same elements in the same places */, Apart };

// The rules of an operator or function, as the catalogue declares them.
bool needs_exact_out(std::string_view operator_name);
OutMemory out_memory_of(std::string_view operator_name);

// Throws where PyTorch refuses a tensor of this dtype as out= of this operator or function.
void check_out_dtype(const char* operator_name, Dtype result, Dtype out);
// Throws where out= shares memory with an input that it must not share.
void check_out_memory(const char* operator_name, OutMemory rule, const TensorObject& out, const TensorObject& input);

// What is given as out= gets the values, and the sizes, of a result that was computed apart.
Ref<> give_to_out(const char* operator_name, PyObject* out, PyObject* result);
// The same for several: nothing is written before all have been checked.
Ref<> give_to_outs(const char* operator_name, PyObject* outs, PyObject* results);

bool init_out_arguments(PyObject* module);

}  // namespace candelabra
