// Losses that have their own kernels: nll_loss, cross_entropy, ctc_loss.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Checks self (N, C, d...) or (C), target (N, d...) and weight (C). The kernel sees (C) as (1, C).
void check_nll_loss(Call& call, int self_argument, int target_argument, int weight_argument) {
  const TensorObject& self = call.tensor(self_argument);
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
  const Dtype target_dtype = call.tensor(target_argument).dtype;
  check(target_dtype == Dtype::Int64 || target_dtype == Dtype::UInt8, PyExc_RuntimeError,
        "nll_loss(): expected target dtype to be Long or Byte, but got ", info(target_dtype).type_name);
  call.convert(target_argument, Dtype::Int64);
  const TensorObject& target = call.tensor(target_argument);

  check(self.ndim() >= 1, PyExc_RuntimeError,
        "nll_loss(): input tensor should be 1D or 2D, but got a tensor without dimensions");
  const int class_dim = self.ndim() == 1 ? 0 : 1;
  const int64_t classes = self.sizes[class_dim];
  if (self.ndim() == 1) {
    check(target.numel == 1 && target.ndim() <= 1, PyExc_ValueError,
          "nll_loss(): For 1D input, 1D target must have size 1, but got target of shape ", shown(target.sizes));
    call.set_descriptor(self_argument, Dims{1, classes}, Dims{0, self.strides[0]});
    unsqueeze_scalar(call, target_argument);
  } else {
    Dims expected = self.sizes;
    expected.erase(1);
    check(target.ndim() == 0 || target.sizes[0] == self.sizes[0], PyExc_ValueError,
          "nll_loss(): Expected input batch_size (", self.sizes[0], ") to match target batch_size (",
          target.ndim() ? target.sizes[0] : 0, ").");
    check(target.sizes == expected, PyExc_RuntimeError, "nll_loss(): Expected target size ", shown(expected), ", got ",
          shown(target.sizes), " for input of shape ", shown(self.sizes));
  }
  const Argument& weight = call[weight_argument];
  if (weight.given()) {
    check(weight.tensor->ndim() == 1 && weight.tensor->numel == classes, PyExc_RuntimeError,
          "nll_loss(): weight tensor should be defined either for all ", classes,
          " classes or no classes but got weight tensor of shape: ", shown(weight.tensor->sizes));
    check(weight.tensor->dtype == self.dtype, PyExc_RuntimeError, "nll_loss(): expected scalar type ",
          info(self.dtype).type_name, " but found ", info(weight.tensor->dtype).type_name, " for weight");
  }
}

void check_reduction(int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, PyExc_ValueError, "nll_loss(): ", reduction,
        " is not a valid value for reduction");
}

// Checks input (N, C), target (N), weight (C) and the name of the reduction, which the kernel sees
// as a number.
void check_cross_entropy(Call& call, int input_argument, int target_argument, int weight_argument,
                         int reduction_argument) {
  const TensorObject& scores = call.tensor(input_argument);
  const TensorObject& target = call.tensor(target_argument);
  if (!is_floating(scores.dtype)) not_implemented(call, scores.dtype);
  check(target.dtype == Dtype::Int64 || target.dtype == Dtype::UInt8, PyExc_RuntimeError,
        "cross_entropy(): expected target dtype to be Long or Byte, but got ", info(target.dtype).type_name);
  check(scores.ndim() == 2 && target.ndim() == 1, PyExc_RuntimeError,
        "cross_entropy(): expected scores of shape (N, C) and classes of shape (N), but got ", shown(scores.sizes),
        " and ", shown(target.sizes));
  check(scores.sizes[0] == target.sizes[0], PyExc_ValueError, "Expected input batch_size (", scores.sizes[0],
        ") to match target batch_size (", target.sizes[0], ").");
  const Argument& weight = call[weight_argument];
  if (weight.given()) {
    check(weight.tensor->ndim() == 1 && weight.tensor->numel == scores.sizes[1], PyExc_RuntimeError,
          "cross_entropy(): weight tensor should be defined either for all ", scores.sizes[1],
          " classes or no classes but got weight tensor of shape: ", shown(weight.tensor->sizes));
    check(weight.tensor->dtype == scores.dtype, PyExc_RuntimeError, "expected scalar type ",
          info(scores.dtype).type_name, " but found ", info(weight.tensor->dtype).type_name);
  }
  call.convert(target_argument, Dtype::Int64);
  call.make_contiguous(input_argument);
  const std::string_view reduction = call[reduction_argument].string;
  const int number = reduction == "none" ? 0 : reduction == "mean" ? 1 : reduction == "sum" ? 2 : -1;
  check(number >= 0, PyExc_ValueError, reduction, " is not a valid value for reduction");
  call.set_int(reduction_argument, number);
}

struct CtcPositions {
  int log_probs, targets, input_lengths, target_lengths, blank;
};

// Checks log_probs (T, N, C), targets (N, S) or (sum of lengths), and the lengths. Returns the
// largest target length.
int64_t check_ctc_loss(Call& call, const CtcPositions& at) {
  const TensorObject& log_probs = call.tensor(at.log_probs);
  if (log_probs.dtype != Dtype::Float32 && log_probs.dtype != Dtype::Float64)
    raise(PyExc_NotImplementedError, "\"ctc_loss_cpu\" not implemented for '", info(log_probs.dtype).type_name, "'");
  check(log_probs.ndim() == 3, PyExc_RuntimeError,
        "ctc_loss(): log_probs must have 3 dimensions (T, N, C), but got shape ", shown(log_probs.sizes));
  const int64_t steps = log_probs.sizes[0], samples = log_probs.sizes[1], classes = log_probs.sizes[2];
  const Dtype target_dtype = call.tensor(at.targets).dtype;
  check(target_dtype == Dtype::Int64 || target_dtype == Dtype::Int32, PyExc_RuntimeError,
        "ctc_loss(): targets must be of dtype int64 or int32, but got ", info(target_dtype).type_name);
  call.convert(at.targets, Dtype::Int64);
  const TensorObject& targets = call.tensor(at.targets);
  check(call.integer(at.blank) >= 0 && call.integer(at.blank) < classes, PyExc_RuntimeError,
        "blank must be in label range");
  const auto input_lengths = call.ints(at.input_lengths), target_lengths = call.ints(at.target_lengths);
  check(static_cast<int64_t>(input_lengths.size()) == samples, PyExc_RuntimeError,
        "input_lengths must be of size batch_size");
  check(static_cast<int64_t>(target_lengths.size()) == samples, PyExc_RuntimeError,
        "target_lengths must be of size batch_size");
  int64_t longest = 0, total = 0;
  for (int64_t length : target_lengths) {
    check(length >= 0 && length <= targets.numel, PyExc_RuntimeError,
          length < 0 ? "Expected target_lengths to have value at least 0, but got value "
                     : "ctc_loss(): the targets are shorter than target_lengths say: ",
          length);
    longest = std::max(longest, length);
    total += length;
  }
  if (targets.ndim() == 1) {
    check(total == targets.numel, PyExc_RuntimeError, "Expected tensor to have size ", total,
          " at dimension 0, but got size ", targets.numel,
          " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
  } else {
    check(targets.ndim() == 2 && targets.sizes[0] == samples && targets.sizes[1] >= longest, PyExc_RuntimeError,
          "Expected tensor to have size at least ", longest, " at dimension 1, but got size ", shown(targets.sizes),
          " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
  }
  for (int64_t length : input_lengths) {
    check(length >= 0, PyExc_RuntimeError, "Expected input_lengths to have value at least 0, but got value ", length);
    check(length <= steps, PyExc_RuntimeError, "Expected input_lengths to have value at most ", steps,
          ", but got value ", length, " (while checking arguments for ctc_loss_cpu)");
  }
  call.make_contiguous(at.targets);
  return longest;
}

}  // namespace

void ctc_loss(Call& call) {
  namespace at = positions::ctc_loss;
  const int64_t longest =
      check_ctc_loss(call, {at::log_probs, at::targets, at::input_lengths, at::target_lengths, at::blank});
  const TensorObject& log_probs = call.tensor(at::log_probs);
  call.add_output(log_probs.dtype, Dims{log_probs.sizes[1]});
  call.add_output(log_probs.dtype, Dims{log_probs.sizes[1], log_probs.sizes[0], 2 * longest + 1});
}

void ctc_loss_backward(Call& call) {
  namespace at = positions::ctc_loss_backward;
  const int64_t longest =
      check_ctc_loss(call, {at::log_probs, at::targets, at::input_lengths, at::target_lengths, at::blank});
  const TensorObject& log_probs = call.tensor(at::log_probs);
  const Dims samples{log_probs.sizes[1]}, states{log_probs.sizes[1], log_probs.sizes[0], 2 * longest + 1};
  for (int i : {at::grad, at::loss})
    check(call.tensor(i).sizes == samples, PyExc_RuntimeError,
          "_ctc_loss_backward(): expected one value a sample, but got shape ", shown(call.tensor(i).sizes));
  const TensorObject& log_alpha = call.tensor(at::log_alpha);
  check(log_alpha.sizes == states, PyExc_RuntimeError, "_ctc_loss_backward(): expected log_alpha of shape ",
        shown(states), ", but got ", shown(log_alpha.sizes));
  for (int i : {at::grad, at::loss, at::log_alpha}) {
    call.convert(i, log_probs.dtype);
    call.make_contiguous(i);
  }
  call.add_output(log_probs.dtype, log_probs.sizes);
}

void nll_loss_forward(Call& call) {
  namespace at = positions::nll_loss_forward;
  check_nll_loss(call, at::self, at::target, at::weight);
  const int64_t reduction = call.integer(at::reduction);
  check_reduction(reduction);
  const TensorObject &self = call.tensor(at::self), &target = call.tensor(at::target);
  const bool no_reduction = reduction == 0;
  Output& output = call.add_output(self.dtype, no_reduction ? target.sizes : Dims{});
  if (no_reduction) output.inserted = scalar_inserted_dims(target);
  call.add_output(self.dtype, Dims{});
}

void cross_entropy_forward(Call& call) {
  namespace at = positions::cross_entropy_forward;
  check_cross_entropy(call, at::input, at::target, at::weight, at::reduction);
  const TensorObject& scores = call.tensor(at::input);
  call.add_output(scores.dtype, call.integer(at::reduction) == 0 ? Dims{scores.sizes[0]} : Dims{});
  call.add_output(scores.dtype, Dims{});
  call.add_output(statistics_dtype(scores.dtype), Dims{2, scores.sizes[0]});
}

void cross_entropy_backward(Call& call) {
  namespace at = positions::cross_entropy_backward;
  check_cross_entropy(call, at::input, at::target, at::weight, at::reduction);
  const TensorObject& scores = call.tensor(at::input);
  call.convert(at::grad, scores.dtype);
  const TensorObject& grad = call.tensor(at::grad);
  if (call.integer(at::reduction) == 0) {
    check(grad.ndim() == 1 && grad.sizes[0] == scores.sizes[0], PyExc_RuntimeError,
          "cross_entropy_backward(): expected grad of shape [", scores.sizes[0], "], but got ", shown(grad.sizes));
  } else {
    check(grad.numel == 1, PyExc_RuntimeError,
          "cross_entropy_backward(): Expected a single element grad tensor, but got shape ", shown(grad.sizes));
    call.set_descriptor(at::grad, {}, {});
  }
  const TensorObject& total_weight = call.tensor(at::total_weight);
  check(total_weight.numel == 1 && total_weight.dtype == scores.dtype, PyExc_RuntimeError,
        "cross_entropy_backward(): expected total_weight to be a single element tensor of type ",
        info(scores.dtype).type_name, ", but got shape ", shown(total_weight.sizes));
  const TensorObject& statistics = call.tensor(at::statistics);
  check(statistics.ndim() == 2 && statistics.sizes[0] == 2 && statistics.sizes[1] == scores.sizes[0] &&
            statistics.dtype == statistics_dtype(scores.dtype),
        PyExc_RuntimeError, "cross_entropy_backward(): expected statistics of shape [2, ", scores.sizes[0],
        "], but got ", shown(statistics.sizes));
  call.make_contiguous(at::statistics);
  call.add_output(scores.dtype, scores.sizes);
}

void nll_loss_backward(Call& call) {
  namespace at = positions::nll_loss_backward;
  check_nll_loss(call, at::self, at::target, at::weight);
  const int64_t reduction = call.integer(at::reduction);
  check_reduction(reduction);
  const TensorObject &self = call.tensor(at::self), &target = call.tensor(at::target);
  call.convert(at::grad, self.dtype);
  const TensorObject& grad = call.tensor(at::grad);
  if (reduction == 0) {
    check(grad.sizes == target.sizes, PyExc_RuntimeError, "nll_loss_backward(): Expected grad of shape ",
          shown(target.sizes), ", but got ", shown(grad.sizes));
    unsqueeze_scalar(call, at::grad);
  } else {
    check(grad.numel == 1, PyExc_RuntimeError,
          "nll_loss_backward(): Expected a single element grad tensor, but got shape ", shown(grad.sizes));
    call.set_descriptor(at::grad, {}, {});
  }
  const TensorObject& total_weight = call.tensor(at::total_weight);
  check(total_weight.numel == 1 && total_weight.dtype == self.dtype, PyExc_RuntimeError,
        "nll_loss_backward(): expected total_weight to be a single element tensor of type ", info(self.dtype).type_name,
        ", but got shape ", shown(total_weight.sizes), " of type ", info(total_weight.dtype).type_name);
  call.add_output(self.dtype, self.sizes).inserted = self.ndim() == 1 ? 1 : 0;
}

}  // namespace candelabra::shapes
