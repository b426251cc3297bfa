// Layer, group and batch normalization. T is the dtype of input, S that of mean and rstd: float32 for half
// precisions, else T. A group normalizes one channel or one row.

#define PER_GROUP __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
#define OPTIONAL(buffer, offset, i, absent) ((buffer) ? LOAD(T, AT_CONST(T, buffer, offset), i) : (absent))

// Mean and reciprocal standard deviation of the elements ELEMENT(i), i < count, of a group.
#define STATISTICS(count)                                                                                     \
  SUM(T) mean = 0, squares = 0;                                                                               \
  for (long i = get_local_id(0); i < (count); i += GROUP) mean += ELEMENT(i);                                 \
  GROUP_COMBINE(SUM(T), scratch, mean, a + b);                                                                \
  mean /= (count);                                                                                            \
  for (long i = get_local_id(0); i < (count); i += GROUP) {                                                   \
    const SUM(T) difference = ELEMENT(i) - mean;                                                              \
    squares += difference * difference;                                                                       \
  }                                                                                                           \
  GROUP_COMBINE(SUM(T), scratch, squares, a + b);

#define ELEMENT(i) LOAD(T, x, i)

PER_GROUP layer_norm(__global char* out, const ulong out_offset, __global char* means, const ulong mean_offset,
                     __global char* rstds, const ulong rstd_offset, const __global char* input,
                     const ulong input_offset, const __global char* weight, const ulong weight_offset,
                     const __global char* bias, const ulong bias_offset, const long width, const ulong eps) {
  __local SUM(T) scratch[GROUP];
  const long row = get_group_id(0);
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset) + row * width;
  __global MEMORY(T)* y = AT(T, out, out_offset) + row * width;
  STATISTICS(width)
  const SUM(T) rstd = 1 / sqrt(squares / width + NUMBER(T, eps));
  for (long i = get_local_id(0); i < width; i += GROUP)
    STORE(T, y, i,
          (ELEMENT(i) - mean) * rstd * OPTIONAL(weight, weight_offset, i, 1) + OPTIONAL(bias, bias_offset, i, 0));
  if (get_local_id(0) == 0) {
    AT(S, means, mean_offset)[row] = mean;
    AT(S, rstds, rstd_offset)[row] = rstd;
  }
}

PER_GROUP layer_norm_backward(__global char* out, const ulong out_offset, const __global char* grad,
                              const ulong grad_offset, const __global char* input, const ulong input_offset,
                              const __global char* means, const ulong mean_offset, const __global char* rstds,
                              const ulong rstd_offset, const __global char* weight, const ulong weight_offset,
                              const long width) {
  __local SUM(T) scratch[GROUP];
  const long row = get_group_id(0);
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset) + row * width;
  const __global MEMORY(T)* dy = AT_CONST(T, grad, grad_offset) + row * width;
  const SUM(T) mean = AT_CONST(S, means, mean_offset)[row], rstd = AT_CONST(S, rstds, rstd_offset)[row];
  SUM(T) total = 0, product = 0;
  for (long i = get_local_id(0); i < width; i += GROUP) {
    const SUM(T) g = LOAD(T, dy, i) * OPTIONAL(weight, weight_offset, i, 1);
    total += g;
    product += g * (ELEMENT(i) - mean) * rstd;
  }
  GROUP_COMBINE(SUM(T), scratch, total, a + b);
  GROUP_COMBINE(SUM(T), scratch, product, a + b);
  for (long i = get_local_id(0); i < width; i += GROUP) {
    const SUM(T) g = LOAD(T, dy, i) * OPTIONAL(weight, weight_offset, i, 1), normal = (ELEMENT(i) - mean) * rstd;
    STORE(T, AT(T, out, out_offset) + row * width, i, rstd * (g - total / width - normal * product / width));
  }
}

// The gradients of weight and bias: one item a column, over the rows.
__kernel void layer_norm_backward_weight(__global char* weight_grad, const ulong weight_grad_offset,
                                         __global char* bias_grad, const ulong bias_grad_offset,
                                         const __global char* grad, const ulong grad_offset, const __global char* input,
                                         const ulong input_offset, const __global char* means, const ulong mean_offset,
                                         const __global char* rstds, const ulong rstd_offset, const long rows,
                                         const long width) {
  const long i = get_global_id(0);
  if (i >= width) return;
  SUM(T) for_weight = 0, for_bias = 0;
  for (long row = 0; row < rows; ++row) {
    const SUM(T) g = LOAD(T, AT_CONST(T, grad, grad_offset), row * width + i);
    const SUM(T) x = LOAD(T, AT_CONST(T, input, input_offset), row * width + i);
    for_weight += g * (x - AT_CONST(S, means, mean_offset)[row]) * AT_CONST(S, rstds, rstd_offset)[row];
    for_bias += g;
  }
  STORE(T, AT(T, weight_grad, weight_grad_offset), i, for_weight);
  STORE(T, AT(T, bias_grad, bias_grad_offset), i, for_bias);
}

// ---- group normalization: a group of channels of an image is a row. `plane` is the size of a
// channel, `width` the number of channels of a group.

PER_GROUP group_norm(__global char* out, const ulong out_offset, __global char* means, const ulong mean_offset,
                     __global char* rstds, const ulong rstd_offset, const __global char* input,
                     const ulong input_offset, const __global char* weight, const ulong weight_offset,
                     const __global char* bias, const ulong bias_offset, const long groups, const long width,
                     const long plane, const ulong eps) {
  __local SUM(T) scratch[GROUP];
  const long row = get_group_id(0), count = width * plane, first = row % groups * width;
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset) + row * count;
  __global MEMORY(T)* y = AT(T, out, out_offset) + row * count;
  STATISTICS(count)
  const SUM(T) rstd = 1 / sqrt(squares / count + NUMBER(T, eps));
  for (long i = get_local_id(0); i < count; i += GROUP) {
    const long c = first + i / plane;
    STORE(T, y, i,
          (ELEMENT(i) - mean) * rstd * OPTIONAL(weight, weight_offset, c, 1) + OPTIONAL(bias, bias_offset, c, 0));
  }
  if (get_local_id(0) == 0) {
    AT(S, means, mean_offset)[row] = mean;
    AT(S, rstds, rstd_offset)[row] = rstd;
  }
}

// For each channel of an image the sums of grad and of grad * (x - mean) * rstd.
PER_GROUP group_norm_backward_sums(__global SUM(T)* sums, const __global char* grad, const ulong grad_offset,
                                   const __global char* input, const ulong input_offset, const __global char* means,
                                   const ulong mean_offset, const __global char* rstds, const ulong rstd_offset,
                                   const long width, const long plane) {
  __local SUM(T) scratch[GROUP];
  const long c = get_group_id(0);
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset) + c * plane;
  const __global MEMORY(T)* dy = AT_CONST(T, grad, grad_offset) + c * plane;
  const SUM(T) mean = AT_CONST(S, means, mean_offset)[c / width], rstd = AT_CONST(S, rstds, rstd_offset)[c / width];
  SUM(T) total = 0, product = 0;
  for (long i = get_local_id(0); i < plane; i += GROUP) {
    const SUM(T) g = LOAD(T, dy, i);
    total += g;
    product += g * (ELEMENT(i) - mean) * rstd;
  }
  GROUP_COMBINE(SUM(T), scratch, total, a + b);
  GROUP_COMBINE(SUM(T), scratch, product, a + b);
  if (get_local_id(0) == 0) {
    sums[2 * c] = total;
    sums[2 * c + 1] = product;
  }
}

PER_GROUP group_norm_backward(__global char* out, const ulong out_offset, const __global char* grad,
                              const ulong grad_offset, const __global char* input, const ulong input_offset,
                              const __global char* means, const ulong mean_offset, const __global char* rstds,
                              const ulong rstd_offset, const __global char* weight, const ulong weight_offset,
                              const __global SUM(T)* sums, const long groups, const long width, const long plane) {
  const long row = get_group_id(0), count = width * plane, first = row % groups * width;
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset) + row * count;
  const __global MEMORY(T)* dy = AT_CONST(T, grad, grad_offset) + row * count;
  const SUM(T) mean = AT_CONST(S, means, mean_offset)[row], rstd = AT_CONST(S, rstds, rstd_offset)[row];
  SUM(T) total = 0, product = 0;
  for (long k = 0; k < width; ++k) {
    const SUM(T) w = OPTIONAL(weight, weight_offset, first + k, 1);
    total += w * sums[2 * (row * width + k)];
    product += w * sums[2 * (row * width + k) + 1];
  }
  for (long i = get_local_id(0); i < count; i += GROUP) {
    const SUM(T) g = LOAD(T, dy, i) * OPTIONAL(weight, weight_offset, first + i / plane, 1);
    const SUM(T) normal = (ELEMENT(i) - mean) * rstd;
    STORE(T, AT(T, out, out_offset) + row * count, i, rstd * (g - total / count - normal * product / count));
  }
}

// The gradients of weight and bias: one item a channel, over the images.
__kernel void group_norm_backward_weight(__global char* weight_grad, const ulong weight_grad_offset,
                                         __global char* bias_grad, const ulong bias_grad_offset,
                                         const __global SUM(T)* sums, const long images, const long channels) {
  const long c = get_global_id(0);
  if (c >= channels) return;
  SUM(T) for_weight = 0, for_bias = 0;
  for (long n = 0; n < images; ++n) {
    for_bias += sums[2 * (n * channels + c)];
    for_weight += sums[2 * (n * channels + c) + 1];
  }
  STORE(T, AT(T, weight_grad, weight_grad_offset), c, for_weight);
  STORE(T, AT(T, bias_grad, bias_grad_offset), c, for_bias);
}

#undef ELEMENT

// ---- batch normalization: element i of channel c is that of image i / volume

// The struct of the same name in src/normalization.cpp.
typedef struct {
  long images, volume;
  long strides[3];  // of images, channels and positions
  long running_strides[2];
  ulong running_offsets[2];
  ulong momentum, eps;
  long training, has_running;
} Batch;

#define PLACE(i) ((i) / p.volume * p.strides[0] + c * p.strides[1] + (i) % p.volume * p.strides[2])
#define ELEMENT(i) LOAD(T, x, PLACE(i))

#define NORMALIZE                                                                                             \
  const SUM(T) w = OPTIONAL(weight, weight_offset, c, 1), b = OPTIONAL(bias, bias_offset, c, 0);              \
  for (long i = get_local_id(0); i < count; i += GROUP)                                                       \
    STORE(T, AT(T, out, out_offset), PLACE(i), (ELEMENT(i) - mean) * rstd * w + b);                           \
  if (get_local_id(0) == 0) {                                                                                 \
    AT(S, means, mean_offset)[c] = mean;                                                                      \
    AT(S, rstds, rstd_offset)[c] = rstd;                                                                      \
  }

PER_GROUP batch_norm_training(__global char* out, const ulong out_offset, __global char* means,
                              const ulong mean_offset, __global char* rstds, const ulong rstd_offset,
                              const __global char* input, const ulong input_offset, const __global char* weight,
                              const ulong weight_offset, const __global char* bias, const ulong bias_offset,
                              __global char* running_mean, __global char* running_var, const Batch p) {
  __local SUM(T) scratch[GROUP];
  const long c = get_group_id(0), count = p.images * p.volume;
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset);
  STATISTICS(count)
  const SUM(T) rstd = 1 / sqrt(squares / count + NUMBER(T, p.eps));
  if (p.has_running && get_local_id(0) == 0) {
    __global MEMORY(T)* average = AT(T, running_mean, p.running_offsets[0]) + c * p.running_strides[0];
    __global MEMORY(T)* variance = AT(T, running_var, p.running_offsets[1]) + c * p.running_strides[1];
    const SUM(T) momentum = NUMBER(T, p.momentum);
    STORE(T, average, 0, (1 - momentum) * LOAD(T, average, 0) + momentum * mean);
    STORE(T, variance, 0, (1 - momentum) * LOAD(T, variance, 0) + momentum * squares / (count - 1));
  }
  NORMALIZE
}

PER_GROUP batch_norm_inference(__global char* out, const ulong out_offset, __global char* means,
                               const ulong mean_offset, __global char* rstds, const ulong rstd_offset,
                               const __global char* input, const ulong input_offset, const __global char* weight,
                               const ulong weight_offset, const __global char* bias, const ulong bias_offset,
                               __global char* running_mean, __global char* running_var, const Batch p) {
  const long c = get_group_id(0), count = p.images * p.volume;
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset);
  const SUM(T) mean = LOAD(T, AT(T, running_mean, p.running_offsets[0]), c * p.running_strides[0]);
  const SUM(T) variance = LOAD(T, AT(T, running_var, p.running_offsets[1]), c * p.running_strides[1]);
  const SUM(T) rstd = 1 / sqrt(variance + NUMBER(T, p.eps));
  NORMALIZE
}

PER_GROUP batch_norm_backward(__global char* out, const ulong out_offset, __global char* weight_grad,
                              const ulong weight_grad_offset, __global char* bias_grad, const ulong bias_grad_offset,
                              const __global char* grad, const ulong grad_offset, const __global char* input,
                              const ulong input_offset, const __global char* means, const ulong mean_offset,
                              const __global char* rstds, const ulong rstd_offset, const __global char* weight,
                              const ulong weight_offset, const Batch p) {
  __local SUM(T) scratch[GROUP];
  const long c = get_group_id(0), count = p.images * p.volume;
  const __global MEMORY(T)* x = AT_CONST(T, input, input_offset);
  const __global MEMORY(T)* dy = AT_CONST(T, grad, grad_offset);
  const SUM(T) mean = AT_CONST(S, means, mean_offset)[c], rstd = AT_CONST(S, rstds, rstd_offset)[c];
  SUM(T) total = 0, product = 0;
  for (long i = get_local_id(0); i < count; i += GROUP) {
    const SUM(T) g = LOAD(T, dy, PLACE(i));
    total += g;
    product += g * (ELEMENT(i) - mean) * rstd;
  }
  GROUP_COMBINE(SUM(T), scratch, total, a + b);
  GROUP_COMBINE(SUM(T), scratch, product, a + b);
  const SUM(T) w = OPTIONAL(weight, weight_offset, c, 1) * rstd;
  for (long i = get_local_id(0); i < count; i += GROUP) {
    SUM(T) g = LOAD(T, dy, PLACE(i));
    if (p.training) g -= total / count + (ELEMENT(i) - mean) * rstd * product / count;
    STORE(T, AT(T, out, out_offset), PLACE(i), g * w);
  }
  if (weight && get_local_id(0) == 0) {
    STORE(T, AT(T, weight_grad, weight_grad_offset), c, product);
    STORE(T, AT(T, bias_grad, bias_grad_offset), c, total);
  }
}
