#include "schemas.hpp"

#include <algorithm>
#include <iterator>

#include "failure.hpp"

namespace candelabra::runner {

namespace {

// Sorted by name.
constexpr Schema schemas[] = {
#include "schemas.inc"
};

bool has_gaps(const cb_value& value) {
  return std::any_of(value.as.tensors, value.as.tensors + value.count, [](const cb_tensor* one) { return !one; });
}

bool fits(char letter, const cb_value& value) {
  const int32_t kind = value.kind;
  switch (letter) {
    case 'T':
      return kind == CB_TENSOR;
    case 't':
      return kind == CB_TENSOR || kind == CB_SCALAR || kind == CB_NONE;
    case 'N':
      return kind == CB_TENSOR || kind == CB_SCALAR;
    case 'L':
      return kind == CB_TENSORS && !has_gaps(value);
    case 'l':
      return kind == CB_TENSORS || kind == CB_NONE;
    case 'S':
      return kind == CB_SCALAR;
    case 's':
      return kind == CB_SCALAR || kind == CB_TENSOR || kind == CB_NONE;
    case 'i':
      return kind == CB_INT || kind == CB_NONE;
    case 'f':
      return kind == CB_FLOAT || kind == CB_SCALAR || kind == CB_INT || kind == CB_NONE;
    case 'd':
      return (kind == CB_INT && value.as.i >= 0 && value.as.i < CB_DTYPE_COUNT) || kind == CB_NONE;
    case 'I':
      return kind == CB_INTS || kind == CB_NONE;
    case 'F':
      return kind == CB_FLOATS || kind == CB_NONE;
    case 'c':
      return kind == CB_STRING || kind == CB_NONE;
    default:
      return kind != CB_TENSOR && kind != CB_TENSORS;
  }
}

}  // namespace

const Schema& schema_of(std::string_view operator_name) {
  const auto* const found = std::ranges::find(schemas, operator_name, &Schema::name);
  require(found != std::end(schemas), "it calls the operator ", operator_name.substr(0, 80), ", which is unknown here");
  return *found;
}

void check_arguments(const Schema& schema, const std::vector<cb_value>& arguments, size_t outputs) {
  require(arguments.size() == schema.arguments.size(), "a call of ", schema.name, " has ", arguments.size(),
          " arguments instead of ", schema.arguments.size());
  require(schema.outputs < 0 || outputs == static_cast<size_t>(schema.outputs), "a call of ", schema.name, " has ",
          outputs, " outputs instead of ", schema.outputs);
  for (size_t i = 0; i < arguments.size(); ++i)
    require(fits(schema.arguments[i], arguments[i]), "argument ", i, " of a call of ", schema.name,
            " is of another kind");
}

}  // namespace candelabra::runner
