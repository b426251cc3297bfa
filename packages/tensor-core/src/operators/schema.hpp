// Operator schemas, parsed from the catalogue's text.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

namespace candelabra {

// The tags of candelabra.catalogue.declaration.
enum Tag : uint32_t {
  tag_inplace = 1,
  tag_view = 2,
  tag_random = 4,
  tag_nondifferentiable = 8,
  tag_numbers = 16,
  tag_hidden = 32,
  tag_function_only = 64,
  tag_method_only = 128,
  tag_composite = 256,
  tag_data_dependent = 512,
  tag_nondeterministic = 1024,
  tag_no_out = 2048,
  tag_core = 4096,
  tag_tensor_first = 8192,
  tag_custom = 16384,
  tag_one_value = 32768,
  tag_any_device = 65536,
  tag_float32_numbers = 131072,
  tag_wrapped_numbers = 262144,
  tag_required = 524288,
  tag_overwrites = 1048576,
};

enum class ParameterType : uint8_t {
  Tensor,
  Tensors,
  Scalar,
  Int,
  Float,
  Bool,
  Str,
  Ints,
  Bools,
  Floats,
  Dtype,
  Device,
  MemoryFormat,
  Generator,
  Object  // any object; the shape rule and the fallback interpret it
};

struct Parameter {
  std::string name;
  PyObject* interned;      // the name as an interned str
  PyObject* written_type;  // the type in the schema as an interned str: "Tensor(a!)", "int[2]?"
  ParameterType type;
  bool optional = false;           // Tensor?: None allowed
  bool optional_elements = false;  // Tensor?[]
  bool keyword_only = false;
  bool mutated = false;               // Tensor(a!)
  int fixed_length = 0;               // int[2]: a single int is repeated
  PyObject* default_value = nullptr;  // a Python object; null if required
};

struct Schema {
  std::string text;
  std::string name;
  std::vector<Parameter> parameters;
  int positional_count = 0;
  std::vector<std::string> result_names;  // empty strings for unnamed results
  bool returns_nothing = false;
  bool custom = false;  // named ns::name; defined by a program, not by the catalogue
  // for custom operators: a result is marked as (a view of) an argument
  bool aliased_results = false;
  // the first list may be given as view(2, 3) instead of view([2, 3])
  bool variadic_first_list = false;
};

// Throws a ValueError that tells the position of the error.
Schema parse_schema(const std::string& text);

}  // namespace candelabra
