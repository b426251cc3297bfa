// nll_loss_forward, nll_loss_backward.
#include "candelabra/arguments/loss.hpp"
#include "drivers/iterate.hpp"
#include "kernels.hpp"
#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

[[noreturn, gnu::cold, gnu::noinline]] void bad_target(int64_t target) {
  throw failure(CB_INDEX_ERROR, "Target %lld is out of bounds.", static_cast<long long>(target));
}

// A view of a tensor of shape (N, C, d...) as (N, d...): the elements of class 0.
struct FirstClass {
  int64_t sizes[max_dims];
  int64_t strides[max_dims];
  cb_tensor tensor;
  int64_t class_stride;

  explicit FirstClass(const cb_tensor& self) : tensor(self), class_stride(self.strides[1]) {
    tensor.ndim = 0;
    tensor.numel = 1;
    for (int d = 0; d < self.ndim; ++d) {
      if (d == 1) continue;
      sizes[tensor.ndim] = self.sizes[d];
      strides[tensor.ndim++] = self.strides[d];
      tensor.numel *= self.sizes[d];
    }
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  FirstClass(const FirstClass&) = delete;
};

template <typename T>
struct Weights {
  const T* values;
  int64_t stride;
  explicit Weights(const cb_tensor* weight)
      : values(weight ? data<T>(*weight) : nullptr), stride(weight ? weight->strides[0] : 0) {}
  double operator()(int64_t target) const { return values ? static_cast<double>(values[target * stride]) : 1.0; }
};

// Positions per partial sum. It is fixed, so that the result does not depend on the number of
// threads.
constexpr int64_t piece = 2048;

template <typename T>
void forward(Call& call, const arguments::NllLossForward& args) {
  const cb_tensor &self = *args.self, &target = *args.target;
  cb_tensor &out = call.output(0), &total = call.output(1);
  Weights<T> weight(args.weight);
  int64_t reduction = args.reduction, ignored = args.ignore_index, classes = self.sizes[1];
  FirstClass first(self);
  // A reduced loss has no output per position: `target` stands in and is not written.
  const cb_tensor& each = reduction == None ? out : target;
  auto g = geometry<3>({&target, &first.tensor, &each}, Order::RowMajor);
  int64_t pieces = (g.numel + piece - 1) / piece;
  Scratch<double> losses(pieces), weights(pieces);
  const int64_t* targets = data<int64_t>(target);
  const T* logarithms = data<T>(self);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      double loss = 0, sum = 0;
      for_each_run(g, p * piece, std::min((p + 1) * piece, g.numel), [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          int64_t number = targets[at[0] + i * g.strides[0][0]];
          double here = 0;
          if (number != ignored) {
            if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(classes)) bad_target(number);
            double w = weight(number);
            here = -w * static_cast<double>(logarithms[at[1] + i * g.strides[1][0] + number * first.class_stride]);
            sum += w;
            loss += here;
          }
          if (reduction == None)
            data<T>(out)[at[2] + i * g.strides[2][0]] = static_cast<T>(static_cast<compute_t<T>>(here));
        }
      });
      losses[p] = loss;
      weights[p] = sum;
    }
  });
  double loss = 0, sum = 0;
  for (int64_t p = 0; p < pieces; ++p) loss += losses[p], sum += weights[p];
  if (reduction != None)
    *data<T>(out) = static_cast<T>(static_cast<compute_t<T>>(reduction == Mean ? loss / sum : loss));
  *data<T>(total) = static_cast<T>(static_cast<compute_t<T>>(sum));
}

template <typename T>
void backward(Call& call, const arguments::NllLossBackward& args) {
  const cb_tensor &grad = *args.grad, &target = *args.target, &total = *args.total_weight;
  cb_tensor& out = call.output();
  Weights<T> weight(args.weight);
  int64_t reduction = args.reduction, ignored = args.ignore_index, classes = out.sizes[1];
  if (out.numel == 0) return;
  static constexpr double zero = 0;
  static constexpr int64_t no_strides[max_dims] = {};
  cb_tensor nothing = out;
  nothing.data = const_cast<double*>(&zero);
  nothing.strides = no_strides;
  FirstClass first(out);
  cb_tensor grads = first.tensor;  // a reduced loss has one gradient for all positions
  grads.data = grad.data;
  grads.strides = reduction == None ? grad.strides : no_strides;
  double scale = reduction == Mean ? 1 / static_cast<double>(*data<T>(total)) : 1;
  move_elements(out, nothing);
  auto g = geometry<3>({&first.tensor, &target, &grads});
  parallel_for(g.numel, light_grain / 4, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        int64_t number = data<int64_t>(target)[at[1] + i * g.strides[1][0]];
        if (number == ignored) continue;
        if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(classes)) bad_target(number);
        double here = -weight(number) * scale * static_cast<double>(data<T>(grad)[at[2] + i * g.strides[2][0]]);
        data<T>(out)[at[0] + i * g.strides[0][0] + number * first.class_stride] =
            static_cast<T>(static_cast<compute_t<T>>(here));
      }
    });
  });
}

void nll_loss_forward(Call& call) {
  const arguments::NllLossForward args(call);
  dispatch<FloatTypes>(args.self->dtype, [&]<typename T>() { forward<T>(call, args); });
}
void nll_loss_backward(Call& call) {
  const arguments::NllLossBackward args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call, args); });
}

}  // namespace

void register_loss(KernelTable& table) {
  table.add<nll_loss_forward>("nll_loss_forward");
  table.add<nll_loss_backward>("nll_loss_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
