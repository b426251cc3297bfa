// Attention: query (N, H, L, E), key (N, G, S, E), value (N, G, S, V), H a multiple of G; mask broadcast to (N, H, L, S).
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_attention(Call& call, int query_argument) {
  const TensorObject &query = call.tensor(query_argument), &key = call.tensor(query_argument + 1),
                     &value = call.tensor(query_argument + 2);
  if (!is_floating(query.dtype)) not_implemented(call, query.dtype);
  check(query.ndim() == 4 && key.ndim() == 4 && value.ndim() == 4, PyExc_RuntimeError, base_name(call),
        "(): expected query, key and value of 4 dimensions, but got shapes ", shown(query.sizes), ", ", shown(key.sizes), " and ",
        shown(value.sizes));
  check(query.dtype == key.dtype && key.dtype == value.dtype, PyExc_RuntimeError,
        "Expected query, key, and value to have the same dtype, but got query.dtype: ", c_name(query.dtype),
        " key.dtype: ", c_name(key.dtype), " and value.dtype: ", c_name(value.dtype), " instead.");
  const bool heads_fit = key.sizes[1] == value.sizes[1] && (key.sizes[1] == 0 || query.sizes[1] % key.sizes[1] == 0) &&
                         (key.sizes[1] != 0 || query.sizes[1] == 0);
  check(query.sizes[0] == key.sizes[0] && key.sizes[0] == value.sizes[0] && heads_fit && query.sizes[3] == key.sizes[3] &&
            key.sizes[2] == value.sizes[2],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(query.sizes), " of query, ", shown(key.sizes), " of key and ",
        shown(value.sizes), " of value do not fit: expected (N, H, L, E), (N, G, S, E) and (N, G, S, V) with G a divisor of H");
}

void check_mask(Call& call, int i, const TensorObject& query, const TensorObject& key) {
  if (!call[i].given()) return;
  const TensorObject& mask = call.tensor(i);
  const Dims wanted{query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]};
  const int missing = 4 - mask.ndim();
  bool fits = missing >= 0;
  for (int d = 0; fits && d < mask.ndim(); ++d) fits = mask.sizes[d] == 1 || mask.sizes[d] == wanted[d + missing];
  check(fits, PyExc_RuntimeError, base_name(call), "(): a mask of shape ", shown(mask.sizes), " cannot be broadcast to ",
        shown(wanted));
  check(mask.dtype == Dtype::Bool || is_floating(mask.dtype), PyExc_RuntimeError,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ", c_name(mask.dtype),
        " and  query.dtype: ", c_name(query.dtype), " instead.");
  if (mask.dtype != Dtype::Bool) call.convert(i, query.dtype);
  call.broadcast(i, wanted);
}

}  // namespace

void attention_forward(Call& call) {
  check_attention(call, 0);
  const TensorObject &query = call.tensor(0), &key = call.tensor(1), &value = call.tensor(2);
  check_mask(call, 3, query, key);
  call.add_output(query.dtype, Dims{query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]});
  call.add_output(statistics_dtype(query.dtype), Dims{query.sizes[0], query.sizes[1], query.sizes[2]});
}

void attention_backward(Call& call) {
  check_attention(call, 1);
  const TensorObject &query = call.tensor(1), &key = call.tensor(2), &value = call.tensor(3);
  check_mask(call, 4, query, key);
  const Dims results{query.sizes[0], query.sizes[1], query.sizes[2], value.sizes[3]};
  const Dims rows{query.sizes[0], query.sizes[1], query.sizes[2]};
  for (int i : {0, 5}) {
    check(call.tensor(i).sizes == results, PyExc_RuntimeError, "attention_backward(): expected grad and output of shape ",
          shown(results), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, query.dtype);
  }
  check(call.tensor(6).sizes == rows, PyExc_RuntimeError, "attention_backward(): expected logsumexp of shape ", shown(rows),
        ", but got ", shown(call.tensor(6).sizes));
  call.convert(6, statistics_dtype(query.dtype));
  call.make_contiguous(6);
  for (const TensorObject* tensor : {&query, &key, &value}) call.add_output(tensor->dtype, tensor->sizes);
}

}  // namespace candelabra::shapes
