// Attention: query (N, H, L, E), key (N, G, S, E), value (N, G, S, V), where H is a multiple of G.
// The mask is broadcast to (N, H, L, S).
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_attention(const Call& call, const TensorObject& query, const TensorObject& key, const TensorObject& value) {
  if (!is_floating(query.dtype)) not_implemented(call, query.dtype);
  check(query.ndim() == 4 && key.ndim() == 4 && value.ndim() == 4, PyExc_RuntimeError, base_name(call),
        "(): expected query, key and value of 4 dimensions, but got shapes ", shown(query.sizes), ", ",
        shown(key.sizes), " and ", shown(value.sizes));
  check(query.dtype == key.dtype && key.dtype == value.dtype, PyExc_RuntimeError,
        "Expected query, key, and value to have the same dtype, but got query.dtype: ", cpp_type_name(query.dtype),
        " key.dtype: ", cpp_type_name(key.dtype), " and value.dtype: ", cpp_type_name(value.dtype), " instead.");
  const bool heads_fit = key.sizes[1] == value.sizes[1] && (key.sizes[1] == 0 || query.sizes[1] % key.sizes[1] == 0) &&
                         (key.sizes[1] != 0 || query.sizes[1] == 0);
  check(query.sizes[0] == key.sizes[0] && key.sizes[0] == value.sizes[0] && heads_fit &&
            query.sizes[3] == key.sizes[3] && key.sizes[2] == value.sizes[2],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(query.sizes), " of query, ", shown(key.sizes),
        " of key and ", shown(value.sizes),
        " of value do not fit: expected (N, H, L, E), (N, G, S, E) and (N, G, S, V) with G a divisor of H");
}

// Checks the mask and broadcasts it to (N, H, L, S).
void prepare_mask(Call& call, int mask_argument, const TensorObject& query, const TensorObject& key) {
  if (!call[mask_argument].given()) return;
  const TensorObject& mask = call.tensor(mask_argument);
  const Dims expanded{query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]};
  const int missing = 4 - mask.ndim();
  bool fits = missing >= 0;
  for (int d = 0; fits && d < mask.ndim(); ++d) fits = mask.sizes[d] == 1 || mask.sizes[d] == expanded[d + missing];
  check(fits, PyExc_RuntimeError, base_name(call), "(): a mask of shape ", shown(mask.sizes),
        " cannot be broadcast to ", shown(expanded));
  check(mask.dtype == Dtype::Bool || is_floating(mask.dtype), PyExc_RuntimeError,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
        cpp_type_name(mask.dtype), " and  query.dtype: ", cpp_type_name(query.dtype), " instead.");
  if (mask.dtype != Dtype::Bool) call.convert(mask_argument, query.dtype);
  call.broadcast(mask_argument, expanded);
}

}  // namespace

void scaled_dot_product_attention(Call& call) {
  namespace at = positions::scaled_dot_product_attention;
  const TensorObject &query = call.tensor(at::query), &key = call.tensor(at::key), &value = call.tensor(at::value);
  check_attention(call, query, key, value);
  prepare_mask(call, at::mask, query, key);
  call.add_output(query.dtype, Dims{query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]});
  call.add_output(statistics_dtype(query.dtype), Dims{query.sizes[0], query.sizes[1], query.sizes[2]});
}

void scaled_dot_product_attention_backward(Call& call) {
  namespace at = positions::scaled_dot_product_attention_backward;
  const TensorObject &query = call.tensor(at::query), &key = call.tensor(at::key), &value = call.tensor(at::value);
  check_attention(call, query, key, value);
  prepare_mask(call, at::mask, query, key);
  const Dims results{query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]};
  const Dims rows{query.sizes[0], query.sizes[1], query.sizes[2]};
  for (int i : {at::grad, at::output}) {
    check(call.tensor(i).sizes == results, PyExc_RuntimeError,
          "_scaled_dot_product_attention_backward(): expected grad and output of shape ", shown(results), ", but got ",
          shown(call.tensor(i).sizes));
    call.convert(i, query.dtype);
  }
  const TensorObject& logsumexp = call.tensor(at::logsumexp);
  check(logsumexp.sizes == rows, PyExc_RuntimeError,
        "_scaled_dot_product_attention_backward(): expected logsumexp of shape ", shown(rows), ", but got ",
        shown(logsumexp.sizes));
  call.convert(at::logsumexp, statistics_dtype(query.dtype));
  call.make_contiguous(at::logsumexp);
  for (const TensorObject* tensor : {&query, &key, &value}) call.add_output(tensor->dtype, tensor->sizes);
}

}  // namespace candelabra::shapes
