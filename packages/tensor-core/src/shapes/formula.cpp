// Operators of a formula, which are elementwise: those of candelabra.library, and of the catalogue
// without a rule of their own.
#include <vector>

#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Positions of the arguments that are tensors, or numbers in a tensor's place.
std::vector<int> find_operands(const Call& call) {
  std::vector<int> operands;
  for (int i = 0; i < call.argument_count; ++i) {
    const ArgumentKind kind = call.arguments[i].kind;
    if (kind == ArgumentKind::Tensor || kind == ArgumentKind::Number) operands.push_back(i);
  }
  return operands;
}

void compute_in(Call& call, const std::vector<int>& operands, Dtype dtype) {
  for (int i : operands) {
    if (call[i].kind == ArgumentKind::Number) check_number_fits(call[i].scalar, dtype, false);
    call.convert(i, dtype);
  }
  combine(call, operands, dtype);
}

}  // namespace

void formula(Call& call) {
  const std::vector<int> operands = find_operands(call);
  compute_in(call, operands, promote_dtypes(call, operands));
}

void formula_float(Call& call) {
  const std::vector<int> operands = find_operands(call);
  const Dtype dtype = promote_dtypes(call, operands);
  compute_in(call, operands, is_integral(dtype) ? default_dtype() : dtype);
}

}  // namespace candelabra::shapes
