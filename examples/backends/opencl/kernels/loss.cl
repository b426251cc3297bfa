// Losses of classes. T is the dtype of the scores, S that of statistics: float32 for half
// precisions, else T. Losses and weights of the rows are written to memory first, then added in a
// fixed order.

#define PER_GROUP __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
// The weight of a class.
#define WEIGHT(c) (weight ? (SUM(T))LOAD(T, AT_CONST(T, weight, weight_offset), (c) * p.weight_step) : (SUM(T))1)

// The struct of the same name in src/loss.cpp. Steps are in elements.
typedef struct {
  long rows, classes;
  long class_step;             // of the scores; those of cross_entropy are contiguous
  long target_step, out_step;  // of cross_entropy; out_step is also that of the gradient of its result
  long weight_step, ignored, reduction;
} Loss;

enum { NO_REDUCTION, MEAN_REDUCTION };

// Reports a class that is neither ignored nor in [0, classes).
__kernel void check_classes(const __global char* targets, const Operands g, const long classes, const long ignored,
                            __global IndexReport* report) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long target = AT_CONST(int64, targets, g.offsets[0])[position(&g, 0, i)];
  if (target != ignored && (target < 0 || target >= classes)) report_index(report, 0, target);
}

// The result of a reduction, and the sum of the weights.
PER_GROUP add_losses(__global char* out, const ulong out_offset, __global char* total, const ulong total_offset,
                     const __global SUM(T)* losses, const __global SUM(T)* weights, const Loss p) {
  __local SUM(T) scratch[GROUP];
  SUM(T) loss = 0, weight = 0;
  for (long i = get_local_id(0); i < p.rows; i += GROUP) {
    loss += losses[i];
    weight += weights[i];
  }
  GROUP_COMBINE(SUM(T), scratch, loss, a + b);
  GROUP_COMBINE(SUM(T), scratch, weight, a + b);
  if (get_local_id(0) != 0) return;
  if (p.reduction == MEAN_REDUCTION) loss /= weight;
  if (p.reduction != NO_REDUCTION) STORE(T, AT(T, out, out_offset), 0, loss);
  STORE(T, AT(T, total, total_offset), 0, weight);
}

// ---- negative log-likelihood: operands are target, the scores of class 0, and the output without a
// reduction

__kernel void nll_loss_forward(__global char* out, const __global char* targets, const __global char* scores,
                               const __global char* weight, const ulong weight_offset, __global SUM(T)* losses,
                               __global SUM(T)* weights, const Operands g, const Loss p) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long target = AT_CONST(int64, targets, g.offsets[0])[position(&g, 0, i)];
  SUM(T) loss = 0, w = 0;
  if (target != p.ignored) {
    w = WEIGHT(target);
    loss = -w * LOAD(T, AT_CONST(T, scores, g.offsets[1]), position(&g, 1, i) + target * p.class_step);
  }
  losses[i] = loss;
  weights[i] = w;
  if (p.reduction == NO_REDUCTION) STORE(T, AT(T, out, g.offsets[2]), position(&g, 2, i), loss);
}

// Operands are target, the gradients of class 0, and that of the loss. The gradients start as zeros.
__kernel void nll_loss_backward(__global char* out, const __global char* targets, const __global char* grad,
                                const __global char* weight, const ulong weight_offset, const __global char* total,
                                const ulong total_offset, const Operands g, const Loss p) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long target = AT_CONST(int64, targets, g.offsets[0])[position(&g, 0, i)];
  if (target == p.ignored) return;
  SUM(T) share = WEIGHT(target) * LOAD(T, AT_CONST(T, grad, g.offsets[2]), position(&g, 2, i));
  if (p.reduction == MEAN_REDUCTION) share /= LOAD(T, AT_CONST(T, total, total_offset), 0);
  STORE(T, AT(T, out, g.offsets[1]), position(&g, 1, i) + target * p.class_step, -share);
}

// ---- cross entropy: a group computes a row

PER_GROUP cross_entropy_forward(__global char* out, const ulong out_offset, __global char* statistics,
                                const ulong statistics_offset, const __global char* scores, const ulong scores_offset,
                                const __global char* targets, const ulong targets_offset, const __global char* weight,
                                const ulong weight_offset, __global SUM(T)* losses, __global SUM(T)* weights,
                                const Loss p) {
  __local SUM(T) scratch[GROUP];
  const long row = get_group_id(0);
  const __global MEMORY(T)* x = AT_CONST(T, scores, scores_offset) + row * p.classes;
  SUM(T) largest = -INFINITY, total = 0;
  for (long i = get_local_id(0); i < p.classes; i += GROUP) {
    const SUM(T) score = LOAD(T, x, i);
    largest = LARGER(score, largest);
  }
  GROUP_COMBINE(SUM(T), scratch, largest, LARGER(a, b));
  for (long i = get_local_id(0); i < p.classes; i += GROUP) total += exp(LOAD(T, x, i) - largest);
  GROUP_COMBINE(SUM(T), scratch, total, a + b);
  if (get_local_id(0) != 0) return;
  const SUM(T) logarithm = p.classes ? log(total) : 0;
  if (p.classes == 0) largest = 0;
  STORE(S, AT(S, statistics, statistics_offset), row, largest);
  STORE(S, AT(S, statistics, statistics_offset), p.rows + row, logarithm);
  const long target = AT_CONST(int64, targets, targets_offset)[row * p.target_step];
  SUM(T) loss = 0, w = 0;
  if (target != p.ignored) {
    w = WEIGHT(target);
    loss = -w * (LOAD(T, x, target) - largest - logarithm);
  }
  losses[row] = loss;
  weights[row] = w;
  if (p.reduction == NO_REDUCTION) STORE(T, AT(T, out, out_offset), row * p.out_step, loss);
}

PER_GROUP cross_entropy_backward(__global char* out, const ulong out_offset, const __global char* grad,
                                 const ulong grad_offset, const __global char* scores, const ulong scores_offset,
                                 const __global char* targets, const ulong targets_offset, const __global char* weight,
                                 const ulong weight_offset, const __global char* total, const ulong total_offset,
                                 const __global char* statistics, const ulong statistics_offset, const Loss p) {
  const long row = get_group_id(0);
  const __global MEMORY(T)* x = AT_CONST(T, scores, scores_offset) + row * p.classes;
  __global MEMORY(T)* to = AT(T, out, out_offset) + row * p.classes;
  const long target = AT_CONST(int64, targets, targets_offset)[row * p.target_step];
  const bool is_ignored = target == p.ignored;
  const SUM(T) largest = LOAD(S, AT_CONST(S, statistics, statistics_offset), row);
  const SUM(T) logarithm = LOAD(S, AT_CONST(S, statistics, statistics_offset), p.rows + row);
  SUM(T) share = 0;
  if (!is_ignored) share = WEIGHT(target) * LOAD(T, AT_CONST(T, grad, grad_offset), row * p.out_step);
  if (p.reduction == MEAN_REDUCTION && !is_ignored) share /= LOAD(T, AT_CONST(T, total, total_offset), 0);
  for (long i = get_local_id(0); i < p.classes; i += GROUP) {
    const SUM(T) probability = exp(LOAD(T, x, i) - largest - logarithm);
    STORE(T, to, i, is_ignored ? 0 : share * (probability - (i == target)));
  }
}
