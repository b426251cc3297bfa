// Attention and its gradients; see kernels/attention.cl.
#include "candelabra/arguments/attention.hpp"

#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// As in kernels/attention.cl.
constexpr int64_t block_rows = 16;
constexpr auto block_columns = static_cast<int64_t>(group_size);

int64_t blocks_of(int64_t extent, int64_t block) {
  return (extent + block - 1) / block;
}

// The structs of the same names in kernels/attention.cl.
struct Heads {
  uint64_t offset;
  int64_t strides[4];
};

enum MaskKind : int64_t { NoMask, BoolMask, NumberMask };

struct Masking {
  Heads mask;
  uint64_t scale;
  int64_t is_causal, mask_kind;
};

struct Attention {
  int64_t heads, share;
  int64_t queries, keys, width, columns;
  Heads query, key, value;
  uint64_t out_offset, statistics_offset;
  Masking masking;
};

struct Gradient {
  int64_t heads, count;
  int64_t other_heads, others;
  int64_t width, columns, out_width;
  Heads rows, rows2, other, other2;
  uint64_t out_offset, statistics_offset;
  Masking masking;
  int64_t rows_are_queries, of_value;
};

Heads heads_of(const cb_tensor& tensor) {
  Heads result = {tensor.offset, {}};
  std::copy_n(tensor.strides, 4, result.strides);
  return result;
}

Masking masking_of(const cb_tensor* mask, bool is_causal, double scale, int32_t dtype) {
  Masking result = {{}, number_bits(scale, dtype), is_causal, NoMask};
  if (!mask) return result;
  result.mask = heads_of(*mask);
  result.mask_kind = mask->dtype == CB_BOOL ? BoolMask : NumberMask;
  return result;
}

cl_mem memory_or_none(const cb_tensor* tensor) {
  return tensor ? memory_of(*tensor) : nullptr;
}

void attention(Call& call) {
  const arguments::ScaledDotProductAttention args(call);
  const cb_tensor &out = call.output(0), &statistics = call.output(1);
  const cb_tensor &query = *args.query, &key = *args.key, &value = *args.value;
  if (statistics.numel == 0) return;
  const Attention attention = {.heads = query.sizes[1],
                               .share = query.sizes[1] / key.sizes[1],
                               .queries = query.sizes[2],
                               .keys = key.sizes[2],
                               .width = query.sizes[3],
                               .columns = value.sizes[3],
                               .query = heads_of(query),
                               .key = heads_of(key),
                               .value = heads_of(value),
                               .out_offset = out.offset,
                               .statistics_offset = statistics.offset,
                               .masking = masking_of(args.mask, args.is_causal, args.scale, query.dtype)};
  Launch(call, "attention", "attention", {{"T", query.dtype}})
      .memory(out)
      .memory(statistics)
      .memory(query)
      .memory(key)
      .memory(value)
      .memory(memory_or_none(args.mask))
      .structure(attention)
      .groups(query.sizes[0] * attention.heads * blocks_of(attention.queries, block_rows) *
              std::max<int64_t>(blocks_of(attention.columns, block_columns), 1));
}

// The tensors of a gradient, as the struct Gradient names them.
struct Sides {
  const cb_tensor &out, &rows, &rows2, &other, &other2;
  bool rows_are_queries, of_value;
};

void run_gradient(const Call& call, const arguments::ScaledDotProductAttentionBackward& args, cl_mem deltas,
                  const Sides& sides) {
  if (sides.out.numel == 0) return;
  const Gradient gradient = {.heads = sides.out.sizes[1],
                             .count = sides.out.sizes[2],
                             .other_heads = sides.other.sizes[1],
                             .others = sides.other.sizes[2],
                             .width = args.query->sizes[3],
                             .columns = args.value->sizes[3],
                             .out_width = sides.out.sizes[3],
                             .rows = heads_of(sides.rows),
                             .rows2 = heads_of(sides.rows2),
                             .other = heads_of(sides.other),
                             .other2 = heads_of(sides.other2),
                             .out_offset = sides.out.offset,
                             .statistics_offset = args.logsumexp->offset,
                             .masking = masking_of(args.mask, args.is_causal, args.scale, sides.out.dtype),
                             .rows_are_queries = sides.rows_are_queries,
                             .of_value = sides.of_value};
  Launch(call, "attention", "attention_backward", {{"T", sides.out.dtype}})
      .memory(sides.out)
      .memory(sides.rows)
      .memory(sides.rows2)
      .memory(sides.other)
      .memory(sides.other2)
      .memory(*args.logsumexp)
      .memory(deltas)
      .memory(memory_or_none(args.mask))
      .structure(gradient)
      .groups(sides.out.sizes[0] * gradient.heads * blocks_of(gradient.count, block_rows) *
              blocks_of(gradient.out_width, block_columns));
}

void attention_backward(Call& call) {
  const arguments::ScaledDotProductAttentionBackward args(call);
  const cb_tensor &grad = *args.grad, &query = *args.query, &key = *args.key, &value = *args.value;
  const int64_t rows = args.logsumexp->numel;
  if (key.sizes[1] == 0) return;
  const Workspace deltas(call, rows * (grad.dtype == CB_FLOAT64 ? 8 : 4));
  Launch(call, "attention", "attention_deltas", {{"T", grad.dtype}})
      .memory(deltas.memory)
      .memory(grad)
      .memory(*args.output)
      .value(query.sizes[1])
      .value(query.sizes[2])
      .value(value.sizes[3])
      .structure(heads_of(grad))
      .structure(heads_of(*args.output))
      .value(rows)
      .items(rows);
  run_gradient(call, args, deltas.memory, {call.output(0), query, grad, key, value, true, false});
  run_gradient(call, args, deltas.memory, {call.output(1), key, value, query, grad, false, false});
  run_gradient(call, args, deltas.memory, {call.output(2), key, value, query, grad, false, true});
}

}  // namespace

void add_attention(Table& table) {
  table.add<attention>("_scaled_dot_product_attention", 0, float_dtypes);
  table.add<attention_backward>("_scaled_dot_product_attention_backward", 0, float_dtypes);
}

}  // namespace candelabra::opencl
