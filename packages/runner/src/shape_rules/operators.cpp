#include "shape_rules/operators.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "call_checks.hpp"
#include "candelabra/operator_rows.hpp"
#include "failure.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::runner {

namespace {

constexpr std::pair<std::string_view, ParameterType> types[] = {
    {"Tensor", ParameterType::Tensor},
    {"Tensor[]", ParameterType::Tensors},
    {"Scalar", ParameterType::Scalar},
    {"int", ParameterType::Int},
    {"float", ParameterType::Float},
    {"bool", ParameterType::Bool},
    {"str", ParameterType::Str},
    {"int[]", ParameterType::Ints},
    {"bool[]", ParameterType::Bools},
    {"float[]", ParameterType::Floats},
    {"dtype", ParameterType::Dtype},
    {"device", ParameterType::Device},
    {"memory_format", ParameterType::MemoryFormat},
    {"Generator", ParameterType::Generator},
};

// No argument is the default of its parameter: calls have all of their arguments.
PyObject no_default{nullptr};

// Such as "Tensor?[] indices" or "Tensor! self".
Parameter parameter_of(std::string_view text) {
  const size_t space = text.rfind(' ');
  std::string type(text.substr(0, space));
  Parameter made{};
  made.name = text.substr(space + 1);
  const auto remove = [&](std::string_view mark) {
    const size_t at = type.find(mark);
    if (at != type.npos) type.erase(at, mark.size());
    return at != type.npos;
  };
  made.mutated = remove("!");
  made.optional_elements = type.starts_with("Tensor?[]");
  if (made.optional_elements) type.erase(6, 1);
  made.optional = remove("?");
  const auto* const found = std::ranges::find(types, type, &std::pair<std::string_view, ParameterType>::first);
  made.type = found == std::end(types) ? ParameterType::Object : found->second;
  made.default_value = &no_default;
  return made;
}

const OperatorRow& row_of(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(operator_rows, name, {}, &OperatorRow::name);
  require(found != std::end(operator_rows) && found->name == name, "it calls the operator ", name.substr(0, 80),
          ", which is unknown here");
  return *found;
}

}  // namespace

bool overwrites_self(std::string_view operator_name) {
  return row_of(operator_name).tags & tag_overwrites;
}

std::unique_ptr<Operator> operator_of(const Kernel& kernel) {
  const OperatorRow& row = row_of(kernel.name);
  const ShapeRuleEntry* const rule = find_kernel_rule(row.rule);
  require(rule, "it calls the operator ", row.name, ", which has no kernel");
  require(!(row.tags & tag_data_dependent), "a call of ", row.name, " has results whose sizes depend on data");
  auto made = std::make_unique<Operator>();
  made->schema.name = row.name;
  made->title = row.name;
  for (std::string_view rest = row.parameters; !rest.empty();) {
    const size_t end = std::min(rest.find(", "), rest.size());
    made->schema.parameters.push_back(parameter_of(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  made->tags = row.tags;
  made->shape = rule->rule;
  made->elementwise = rule->elementwise;
  for (size_t category = 0; category < made->refusals.size(); ++category)
    if (row.refused >> category & 1) made->refusals[category].exception = PyExc_NotImplementedError;
  const std::vector<Parameter>& parameters = made->schema.parameters;
  made->changed_arguments = 0;
  for (size_t i = 0; i < parameters.size(); ++i) made->changed_arguments |= uint32_t{parameters[i].mutated} << i;
  made->returns_self = !parameters.empty() && parameters[0].mutated && parameters[0].type == ParameterType::Tensor;
  made->kernels[0].compiled = kernel.entry->kernel;
  made->kernels[0].flags = kernel.entry->flags;
  return made;
}

}  // namespace candelabra::runner
