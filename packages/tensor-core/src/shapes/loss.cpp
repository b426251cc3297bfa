// Losses that have kernels.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

// Checks self (N, C, d...) or (C), target (N, d...) and weight (C), and makes the kernel see (C) as (1, C).
void check_classes(Call& call, int self_argument, int target_argument, int weight_argument) {
  const TensorObject& self = call.tensor(self_argument);
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
  const Dtype target_dtype = call.tensor(target_argument).dtype;
  check(target_dtype == Dtype::Int64 || target_dtype == Dtype::UInt8, PyExc_RuntimeError,
        "nll_loss(): expected target dtype to be Long or Byte, but got ", info(target_dtype).type_name);
  call.convert(target_argument, Dtype::Int64);
  const TensorObject& target = call.tensor(target_argument);

  check(self.ndim() >= 1, PyExc_RuntimeError, "nll_loss(): input tensor should be 1D or 2D, but got a tensor without dimensions");
  const int class_dim = self.ndim() == 1 ? 0 : 1;
  const int64_t classes = self.sizes[class_dim];
  if (self.ndim() == 1) {
    check(target.numel == 1 && target.ndim() <= 1, PyExc_ValueError,
          "nll_loss(): For 1D input, 1D target must have size 1, but got target of shape ", shown(target.sizes));
    call.set_descriptor(self_argument, Dims{1, classes}, Dims{0, self.strides[0]});
    see_dimension(call, target_argument);
  } else {
    Dims expected = self.sizes;
    expected.erase(1);
    check(target.ndim() == 0 || target.sizes[0] == self.sizes[0], PyExc_ValueError, "nll_loss(): Expected input batch_size (",
          self.sizes[0], ") to match target batch_size (", target.ndim() ? target.sizes[0] : 0, ").");
    check(target.sizes == expected, PyExc_RuntimeError, "nll_loss(): Expected target size ", shown(expected), ", got ",
          shown(target.sizes), " for input of shape ", shown(self.sizes));
  }
  const Argument& weight = call[weight_argument];
  if (weight.given()) {
    check(weight.tensor->ndim() == 1 && weight.tensor->numel == classes, PyExc_RuntimeError,
          "nll_loss(): weight tensor should be defined either for all ", classes,
          " classes or no classes but got weight tensor of shape: ", shown(weight.tensor->sizes));
    check(weight.tensor->dtype == self.dtype, PyExc_RuntimeError, "nll_loss(): expected scalar type ", info(self.dtype).type_name,
          " but found ", info(weight.tensor->dtype).type_name, " for weight");
  }
}

void check_reduction(int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, PyExc_ValueError, "nll_loss(): ", reduction, " is not a valid value for reduction");
}

// Checks scores (N, C), target (N), weight (C) and the name of the reduction, whose number the kernel sees.
void check_scores(Call& call, int scores_argument, int reduction_argument) {
  const TensorObject& scores = call.tensor(scores_argument);
  const TensorObject& target = call.tensor(scores_argument + 1);
  if (!is_floating(scores.dtype)) not_implemented(call, scores.dtype);
  check(target.dtype == Dtype::Int64 || target.dtype == Dtype::UInt8, PyExc_RuntimeError,
        "cross_entropy(): expected target dtype to be Long or Byte, but got ", info(target.dtype).type_name);
  check(scores.ndim() == 2 && target.ndim() == 1, PyExc_RuntimeError,
        "cross_entropy(): expected scores of shape (N, C) and classes of shape (N), but got ", shown(scores.sizes), " and ",
        shown(target.sizes));
  check(scores.sizes[0] == target.sizes[0], PyExc_ValueError, "Expected input batch_size (", scores.sizes[0],
        ") to match target batch_size (", target.sizes[0], ").");
  const Argument& weight = call[scores_argument + 2];
  if (weight.given()) {
    check(weight.tensor->ndim() == 1 && weight.tensor->numel == scores.sizes[1], PyExc_RuntimeError,
          "cross_entropy(): weight tensor should be defined either for all ", scores.sizes[1],
          " classes or no classes but got weight tensor of shape: ", shown(weight.tensor->sizes));
    check(weight.tensor->dtype == scores.dtype, PyExc_RuntimeError, "expected scalar type ", info(scores.dtype).type_name,
          " but found ", info(weight.tensor->dtype).type_name);
  }
  call.convert(scores_argument + 1, Dtype::Int64);
  call.make_contiguous(scores_argument);
  const std::string_view reduction = call[reduction_argument].string;
  const int number = reduction == "none" ? 0 : reduction == "mean" ? 1 : reduction == "sum" ? 2 : -1;
  check(number >= 0, PyExc_ValueError, reduction, " is not a valid value for reduction");
  call.set_int(reduction_argument, number);
}

// Checks log_probs (T, N, C), targets (N, S) or all in a row, and the lengths; returns the length of the longest target.
int64_t check_ctc(Call& call, int scores_argument, int blank_argument) {
  const TensorObject& scores = call.tensor(scores_argument);
  if (scores.dtype != Dtype::Float32 && scores.dtype != Dtype::Float64)
    raise(PyExc_NotImplementedError, "\"ctc_loss_cpu\" not implemented for '", info(scores.dtype).type_name, "'");
  check(scores.ndim() == 3, PyExc_RuntimeError, "ctc_loss(): log_probs must have 3 dimensions (T, N, C), but got shape ",
        shown(scores.sizes));
  const int64_t times = scores.sizes[0], samples = scores.sizes[1], classes = scores.sizes[2];
  const int targets_argument = scores_argument + 1;
  const Dtype target_dtype = call.tensor(targets_argument).dtype;
  check(target_dtype == Dtype::Int64 || target_dtype == Dtype::Int32, PyExc_RuntimeError,
        "ctc_loss(): targets must be of dtype int64 or int32, but got ", info(target_dtype).type_name);
  call.convert(targets_argument, Dtype::Int64);
  const TensorObject& targets = call.tensor(targets_argument);
  check(call.integer(blank_argument) >= 0 && call.integer(blank_argument) < classes, PyExc_RuntimeError,
        "blank must be in label range");
  const auto input_lengths = call.ints(scores_argument + 2), target_lengths = call.ints(scores_argument + 3);
  check(static_cast<int64_t>(input_lengths.size()) == samples, PyExc_RuntimeError, "input_lengths must be of size batch_size");
  check(static_cast<int64_t>(target_lengths.size()) == samples, PyExc_RuntimeError, "target_lengths must be of size batch_size");
  int64_t longest = 0, together = 0;
  for (int64_t length : target_lengths) {
    check(length >= 0 && length <= targets.numel, PyExc_RuntimeError,
          length < 0 ? "Expected target_lengths to have value at least 0, but got value "
                     : "ctc_loss(): the targets are shorter than target_lengths say: ",
          length);
    longest = std::max(longest, length);
    together += length;
  }
  if (targets.ndim() == 1) {
    check(together == targets.numel, PyExc_RuntimeError, "Expected tensor to have size ", together,
          " at dimension 0, but got size ", targets.numel,
          " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
  } else {
    check(targets.ndim() == 2 && targets.sizes[0] == samples && targets.sizes[1] >= longest, PyExc_RuntimeError,
          "Expected tensor to have size at least ", longest, " at dimension 1, but got size ", shown(targets.sizes),
          " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
  }
  for (int64_t length : input_lengths) {
    check(length >= 0, PyExc_RuntimeError, "Expected input_lengths to have value at least 0, but got value ", length);
    check(length <= times, PyExc_RuntimeError, "Expected input_lengths to have value at most ", times, ", but got value ", length,
          " (while checking arguments for ctc_loss_cpu)");
  }
  call.make_contiguous(targets_argument);
  return longest;
}

}  // namespace

void ctc_loss_forward(Call& call) {
  const int64_t longest = check_ctc(call, 0, 4);
  const TensorObject& scores = call.tensor(0);
  call.add_output(scores.dtype, Dims{scores.sizes[1]});
  call.add_output(scores.dtype, Dims{scores.sizes[1], scores.sizes[0], 2 * longest + 1});
}

void ctc_loss_backward(Call& call) {
  const int64_t longest = check_ctc(call, 1, 7);
  const TensorObject& scores = call.tensor(1);
  const Dims samples{scores.sizes[1]}, states{scores.sizes[1], scores.sizes[0], 2 * longest + 1};
  for (int i : {0, 5})
    check(call.tensor(i).sizes == samples, PyExc_RuntimeError, "ctc_loss_backward(): expected one value a sample, but got shape ",
          shown(call.tensor(i).sizes));
  check(call.tensor(6).sizes == states, PyExc_RuntimeError, "ctc_loss_backward(): expected log_alpha of shape ", shown(states),
        ", but got ", shown(call.tensor(6).sizes));
  for (int i : {0, 5, 6}) {
    call.convert(i, scores.dtype);
    call.make_contiguous(i);
  }
  call.add_output(scores.dtype, scores.sizes);
}

void nll_loss_forward(Call& call) {
  check_classes(call, 0, 1, 2);
  const int64_t reduction = call.integer(3);
  check_reduction(reduction);
  const TensorObject &self = call.tensor(0), &target = call.tensor(1);
  const bool each = reduction == 0;
  Output& output = call.add_output(self.dtype, each ? target.sizes : Dims{});
  if (each) output.inserted = inserted_dimension(target);
  call.add_output(self.dtype, Dims{});
}

void cross_entropy_forward(Call& call) {
  check_scores(call, 0, 4);
  const TensorObject& scores = call.tensor(0);
  call.add_output(scores.dtype, call.integer(4) == 0 ? Dims{scores.sizes[0]} : Dims{});
  call.add_output(scores.dtype, Dims{});
  call.add_output(statistics_dtype(scores.dtype), Dims{2, scores.sizes[0]});
}

void cross_entropy_backward(Call& call) {
  check_scores(call, 1, 5);
  const TensorObject& scores = call.tensor(1);
  call.convert(0, scores.dtype);
  const TensorObject& grad = call.tensor(0);
  if (call.integer(5) == 0) {
    check(grad.ndim() == 1 && grad.sizes[0] == scores.sizes[0], PyExc_RuntimeError,
          "cross_entropy_backward(): expected grad of shape [", scores.sizes[0], "], but got ", shown(grad.sizes));
  } else {
    check(grad.numel == 1, PyExc_RuntimeError, "cross_entropy_backward(): Expected a single element grad tensor, but got shape ",
          shown(grad.sizes));
    call.set_descriptor(0, {}, {});
  }
  check(call.tensor(6).numel == 1 && call.tensor(6).dtype == scores.dtype, PyExc_RuntimeError,
        "cross_entropy_backward(): expected total_weight to be a single element tensor of type ", info(scores.dtype).type_name,
        ", but got shape ", shown(call.tensor(6).sizes));
  const TensorObject& statistics = call.tensor(7);
  check(statistics.ndim() == 2 && statistics.sizes[0] == 2 && statistics.sizes[1] == scores.sizes[0] &&
            statistics.dtype == statistics_dtype(scores.dtype),
        PyExc_RuntimeError, "cross_entropy_backward(): expected statistics of shape [2, ", scores.sizes[0], "], but got ",
        shown(statistics.sizes));
  call.make_contiguous(7);
  call.add_output(scores.dtype, scores.sizes);
}

void nll_loss_backward(Call& call) {
  check_classes(call, 1, 2, 3);
  const int64_t reduction = call.integer(4);
  check_reduction(reduction);
  const TensorObject &self = call.tensor(1), &target = call.tensor(2);
  call.convert(0, self.dtype);
  const TensorObject& grad = call.tensor(0);
  if (reduction == 0) {
    check(grad.sizes == target.sizes, PyExc_RuntimeError, "nll_loss_backward(): Expected grad of shape ", shown(target.sizes),
          ", but got ", shown(grad.sizes));
    see_dimension(call, 0);
  } else {
    check(grad.numel == 1, PyExc_RuntimeError, "nll_loss_backward(): Expected a single element grad tensor, but got shape ",
          shown(grad.sizes));
    call.set_descriptor(0, {}, {});
  }
  check(call.tensor(6).numel == 1 && call.tensor(6).dtype == self.dtype, PyExc_RuntimeError,
        "nll_loss_backward(): expected total_weight to be a single element tensor of type ", info(self.dtype).type_name,
        ", but got shape ", shown(call.tensor(6).sizes), " of type ", info(call.tensor(6).dtype).type_name);
  call.add_output(self.dtype, self.sizes).inserted = self.ndim() == 1 ? 1 : 0;
}

}  // namespace candelabra::shapes
