// Pooling over one to three spatial dimensions, which are seen as three. T is the dtype. Windows are
// regular or adaptive; no kernel adds in an order that depends on the launch.

// The struct of the same name in src/pooling.cpp. Spatial lists are depth, height, width.
typedef struct {
  long planes, channels;
  long in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];
  long in_strides[5], out_strides[5], index_strides[5];  // N, C, depth, height, width
  ulong in_offset, out_offset, index_offset;
  ulong lowest;  // the maximum of nothing
  long is_adaptive, counts_padding, divisor;
} Pooling;

// The elements of an output along one dimension: `count` from `first` on, and `padded` with the
// padding.
typedef struct {
  long first, count, padded;
} Window;

static inline Window window(const Pooling* p, int d, long o) {
  Window w;
  if (p->is_adaptive) {
    w.first = o * p->in[d] / p->out[d];
    w.count = w.padded = ((o + 1) * p->in[d] + p->out[d] - 1) / p->out[d] - w.first;
    return w;
  }
  const long start = o * p->stride[d] - p->padding[d], step = p->dilation[d];
  const long skipped = start < 0 ? (-start + step - 1) / step : 0;
  w.first = start + skipped * step;
  w.count = w.first >= p->in[d] ? 0 : min(p->kernel_size[d] - skipped, (p->in[d] - 1 - w.first) / step + 1);
  w.count = max(w.count, 0L);
  // With ceil_mode a window may extend beyond the padding. That part is not counted.
  w.padded = min(start + p->kernel_size[d], p->in[d] + p->padding[d]) - start;
  return w;
}

// The outputs whose windows may have an element, along one dimension, without dilation.
static inline long first_output(const Pooling* p, int d, long i) {
  if (p->is_adaptive) return i * p->out[d] / p->in[d];
  const long beyond = i + p->padding[d] - p->kernel_size[d] + 1;
  return beyond <= 0 ? 0 : (beyond + p->stride[d] - 1) / p->stride[d];
}
static inline long last_output(const Pooling* p, int d, long i) {
  const long last = p->is_adaptive ? ((i + 1) * p->out[d] - 1) / p->in[d] : (i + p->padding[d]) / p->stride[d];
  return min(last, p->out[d] - 1);
}

// Plane and spatial position of element i, in row-major order.
static inline long split(const long* sizes, long i, long* at) {
  for (int d = 2; d >= 0; --d) {
    at[d] = i % sizes[d];
    i /= sizes[d];
  }
  return i;
}
static inline long plane_position(const Pooling* p, const long* strides, long plane) {
  return plane / p->channels * strides[0] + plane % p->channels * strides[1];
}
static inline long spatial_position(const long* strides, long depth, long height, long width) {
  return depth * strides[2] + height * strides[3] + width * strides[4];
}

#define OUTPUTS(p) ((p).out[0] * (p).out[1] * (p).out[2])
#define INPUTS(p) ((p).in[0] * (p).in[1] * (p).in[2])

// Of equal elements the first wins, and of NaN the last. The index of a window without elements is
// -1.
__kernel void max_pool(__global char* out, __global char* indices, const __global char* self, const Pooling p) {
  long at[3];
  const long i = get_global_id(0), plane = split(p.out, i, at);
  if (plane >= p.planes) return;
  const __global MEMORY(T)* x = AT_CONST(T, self, p.in_offset) + plane_position(&p, p.in_strides, plane);
  const Window wd = window(&p, 0, at[0]), wh = window(&p, 1, at[1]), ww = window(&p, 2, at[2]);
  COMPUTE(T) best = NUMBER(T, p.lowest);
  long index = -1;
  for (long d = 0; d < wd.count; ++d)
    for (long h = 0; h < wh.count; ++h)
      for (long w = 0; w < ww.count; ++w) {
        const long depth = wd.first + d * p.dilation[0], height = wh.first + h * p.dilation[1],
                   width = ww.first + w * p.dilation[2];
        const COMPUTE(T) value = LOAD(T, x, spatial_position(p.in_strides, depth, height, width));
        if (index >= 0 && !(value > best) && !IS_NAN(value)) continue;
        best = value;
        index = (depth * p.in[1] + height) * p.in[2] + width;
      }
  STORE(T, AT(T, out, p.out_offset),
        plane_position(&p, p.out_strides, plane) + spatial_position(p.out_strides, at[0], at[1], at[2]), best);
  AT(int64, indices, p.index_offset)
  [plane_position(&p, p.index_strides, plane) + spatial_position(p.index_strides, at[0], at[1], at[2])] = index;
}

// One item adds the gradients of a plane, in order, to sums of more precision.
__kernel void max_pool_backward(__global char* out, const __global char* grad, const __global char* indices,
                                __global SUM(T)* sums, const Pooling p) {
  const long plane = get_global_id(0);
  if (plane >= p.planes) return;
  const __global MEMORY(T)* values = AT_CONST(T, grad, p.out_offset) + plane_position(&p, p.out_strides, plane);
  const __global long* from = AT_CONST(int64, indices, p.index_offset) + plane_position(&p, p.index_strides, plane);
  __global MEMORY(T)* to = AT(T, out, p.in_offset) + plane_position(&p, p.in_strides, plane);
  const long inputs = INPUTS(p), outputs = OUTPUTS(p);
  __global SUM(T)* sum = sums + plane * inputs;
  long at[3];
  for (long i = 0; i < inputs; ++i) sum[i] = 0;
  for (long o = 0; o < outputs; ++o) {
    split(p.out, o, at);
    const long index = from[spatial_position(p.index_strides, at[0], at[1], at[2])];
    if (index >= 0) sum[index] += LOAD(T, values, spatial_position(p.out_strides, at[0], at[1], at[2]));
  }
  for (long i = 0; i < inputs; ++i) {
    split(p.in, i, at);
    STORE(T, to, spatial_position(p.in_strides, at[0], at[1], at[2]), sum[i]);
  }
}

// The sum of a window without elements is 0, whatever the divisor.
static inline SUM(T) divisor_of(const Pooling* p, Window d, Window h, Window w) {
  const long count = d.count * h.count * w.count;
  if (count == 0) return 1;
  if (p->divisor) return p->divisor;
  return p->counts_padding ? d.padded * h.padded * w.padded : count;
}

// Also adaptive_avg_pool.
__kernel void avg_pool(__global char* out, const __global char* self, const Pooling p) {
  long at[3];
  const long i = get_global_id(0), plane = split(p.out, i, at);
  if (plane >= p.planes) return;
  const __global MEMORY(T)* x = AT_CONST(T, self, p.in_offset) + plane_position(&p, p.in_strides, plane);
  const Window wd = window(&p, 0, at[0]), wh = window(&p, 1, at[1]), ww = window(&p, 2, at[2]);
  SUM(T) sum = 0;
  for (long d = 0; d < wd.count; ++d)
    for (long h = 0; h < wh.count; ++h)
      for (long w = 0; w < ww.count; ++w)
        sum += LOAD(T, x, spatial_position(p.in_strides, wd.first + d, wh.first + h, ww.first + w));
  STORE(T, AT(T, out, p.out_offset),
        plane_position(&p, p.out_strides, plane) + spatial_position(p.out_strides, at[0], at[1], at[2]),
        sum / divisor_of(&p, wd, wh, ww));
}

// Each element of the input adds its share of the windows that have it.
__kernel void avg_pool_backward(__global char* out, const __global char* grad, const Pooling p) {
  long at[3];
  const long i = get_global_id(0), plane = split(p.in, i, at);
  if (plane >= p.planes) return;
  const __global MEMORY(T)* values = AT_CONST(T, grad, p.out_offset) + plane_position(&p, p.out_strides, plane);
  SUM(T) sum = 0;
  for (long d = first_output(&p, 0, at[0]); d <= last_output(&p, 0, at[0]); ++d)
    for (long h = first_output(&p, 1, at[1]); h <= last_output(&p, 1, at[1]); ++h)
      for (long w = first_output(&p, 2, at[2]); w <= last_output(&p, 2, at[2]); ++w)
        sum += LOAD(T, values, spatial_position(p.out_strides, d, h, w)) /
               divisor_of(&p, window(&p, 0, d), window(&p, 1, h), window(&p, 2, w));
  STORE(T, AT(T, out, p.in_offset),
        plane_position(&p, p.in_strides, plane) + spatial_position(p.in_strides, at[0], at[1], at[2]), sum);
}
