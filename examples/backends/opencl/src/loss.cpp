// nll_loss and cross_entropy, and their gradients; see kernels/loss.cl.
#include "candelabra/arguments/loss.hpp"

#include "families.hpp"
#include "indexing.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

// The struct of the same name in kernels/loss.cl.
struct Loss {
  int64_t rows, classes;
  int64_t class_step;
  int64_t target_step, out_step;
  int64_t weight_step, ignored, reduction;
};

// Sums are of float32 for half precisions, like statistics.
int32_t statistics_dtype(int32_t dtype) {
  return kernel::is_half_dtype(dtype) ? CB_FLOAT32 : dtype;
}

Launch loss_kernel(const Call& call, const char* name, int32_t dtype) {
  return Launch(call, "loss", name, {{"T", dtype}, {"S", statistics_dtype(dtype)}});
}

void check_classes(const Call& call, const cb_tensor& target, const Loss& loss) {
  if (target.numel == 0) return;
  const IndexCheck check(call);
  loss_kernel(call, "check_classes", CB_FLOAT32)
      .memory(target)
      .structure(operands_of({&target}, CB_INT64))
      .value(loss.classes)
      .value(loss.ignored)
      .memory(check.memory())
      .items(target.numel);
  if (const auto bad = check.bad())
    throw failure(CB_INDEX_ERROR, "Target %lld is out of bounds.", static_cast<long long>(bad->index));
}

// Losses and weights of the rows, until they are added.
struct Rows {
  Rows(const Call& call, int64_t rows, int32_t dtype)
      : losses(call, rows * kernel::itemsize(statistics_dtype(dtype))),
        weights(call, rows * kernel::itemsize(statistics_dtype(dtype))) {}
  Workspace losses, weights;
};

void add_losses(const Call& call, const Rows& rows, const Loss& loss) {
  loss_kernel(call, "add_losses", call.output(0).dtype)
      .tensor(&call.output(0))
      .tensor(&call.output(1))
      .memory(rows.losses.memory)
      .memory(rows.weights.memory)
      .structure(loss)
      .groups(1);
}

// ---- nll_loss: scores (N, C, d...) and classes (N, d...)

Loss nll_loss_of(const cb_tensor& scores, const cb_tensor& target, const cb_tensor* weight, int64_t reduction,
                 int64_t ignored) {
  Loss loss = {};
  loss.rows = target.numel;
  loss.classes = scores.sizes[1];
  loss.class_step = scores.strides[1];
  loss.weight_step = weight ? weight->strides[0] : 0;
  loss.ignored = ignored;
  loss.reduction = reduction;
  return loss;
}

// The elements of class 0, (N, d...).
View first_class(const cb_tensor& tensor) {
  View view(tensor);
  view.sizes.erase(view.sizes.begin() + 1);
  view.strides.erase(view.strides.begin() + 1);
  return view;
}

void nll_loss_forward(Call& call) {
  const arguments::NllLossForward args(call);
  const cb_tensor &out = call.output(0), &self = *args.self, &target = *args.target;
  const Loss loss = nll_loss_of(self, target, args.weight, args.reduction, args.ignore_index);
  check_classes(call, target, loss);
  const Rows rows(call, loss.rows, self.dtype);
  if (loss.rows) {
    View scores = first_class(self);
    const cb_tensor& each = args.reduction == None ? out : target;  // not written with a reduction
    loss_kernel(call, "nll_loss_forward", self.dtype)
        .memory(out)
        .memory(target)
        .memory(self)
        .tensor(args.weight)
        .memory(rows.losses.memory)
        .memory(rows.weights.memory)
        .structure(operands_of({&target, &scores.get(), &each}, self.dtype, true))
        .structure(loss)
        .items(loss.rows);
  }
  add_losses(call, rows, loss);
}

void nll_loss_backward(Call& call) {
  const arguments::NllLossBackward args(call);
  const cb_tensor &out = call.output(), &target = *args.target;
  const Loss loss = nll_loss_of(out, target, args.weight, args.reduction, args.ignore_index);
  check_classes(call, target, loss);
  if (out.numel == 0) return;
  fill_zeros(call, out);
  View grads = first_class(out);
  View of_loss(*args.grad);  // one for all rows with a reduction
  of_loss.sizes = grads.sizes;
  if (args.reduction != None) of_loss.strides.assign(grads.sizes.size(), 0);
  loss_kernel(call, "nll_loss_backward", out.dtype)
      .memory(out)
      .memory(target)
      .memory(*args.grad)
      .tensor(args.weight)
      .tensor(args.total_weight)
      .structure(operands_of({&target, &grads.get(), &of_loss.get()}, out.dtype))
      .structure(loss)
      .items(loss.rows);
}

// ---- cross_entropy: scores (N, C) and classes (N)

Loss cross_entropy_of(const cb_tensor& scores, const cb_tensor& target, const cb_tensor* weight, int64_t reduction,
                      int64_t ignored, const cb_tensor& result) {
  Loss loss = nll_loss_of(scores, target, weight, reduction, ignored);
  loss.target_step = target.strides[0];
  loss.out_step = reduction == None ? result.strides[0] : 0;
  return loss;
}

void cross_entropy_forward(Call& call) {
  const arguments::CrossEntropyForward args(call);
  const cb_tensor& scores = *args.input;
  const Loss loss =
      cross_entropy_of(scores, *args.target, args.weight, args.reduction, args.ignore_index, call.output(0));
  check_classes(call, *args.target, loss);
  const Rows rows(call, loss.rows, scores.dtype);
  loss_kernel(call, "cross_entropy_forward", scores.dtype)
      .tensor(&call.output(0))
      .tensor(&call.output(2))
      .tensor(&scores)
      .tensor(args.target)
      .tensor(args.weight)
      .memory(rows.losses.memory)
      .memory(rows.weights.memory)
      .structure(loss)
      .groups(loss.rows);
  add_losses(call, rows, loss);
}

void cross_entropy_backward(Call& call) {
  const arguments::CrossEntropyBackward args(call);
  const cb_tensor& out = call.output();
  const Loss loss =
      cross_entropy_of(*args.input, *args.target, args.weight, args.reduction, args.ignore_index, *args.grad);
  check_classes(call, *args.target, loss);
  if (out.numel == 0) return;
  loss_kernel(call, "cross_entropy_backward", out.dtype)
      .tensor(&out)
      .tensor(args.grad)
      .tensor(args.input)
      .tensor(args.target)
      .tensor(args.weight)
      .tensor(args.total_weight)
      .tensor(args.statistics)
      .structure(loss)
      .groups(loss.rows);
}

}  // namespace

void add_loss(Table& table) {
  table.add<nll_loss_forward>("nll_loss_forward", 0, float_dtypes);
  table.add<nll_loss_backward>("nll_loss_backward", 0, float_dtypes);
  table.add<cross_entropy_forward>("cross_entropy_forward", 0, float_dtypes);
  table.add<cross_entropy_backward>("cross_entropy_backward", 0, float_dtypes);
}

}  // namespace candelabra::opencl
