// Reductions over any dimensions; see kernels/reduction.cl.
#include "candelabra/arguments/reduction.hpp"

#include "candelabra/geometry.hpp"
#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// The struct of the same name in kernels/reduction.cl.
struct Reduction {
  int64_t count, kept_ndim, kept_sizes[max_dimensions], out_strides[max_dimensions], kept_strides[max_dimensions];
  int64_t size, ndim, sizes[max_dimensions], strides[max_dimensions];
  uint64_t out_offset, offset;
  uint64_t parameters[2];
};

// Splits the dimensions of self into those of the output and the reduced ones.
Reduction reduction_of(const cb_tensor& out, const cb_tensor& self, std::span<const int64_t> dims) {
  kernel::Geometry<2> kept;
  kernel::Geometry<1> reduced;
  int kept_count = 0, reduced_count = 0;
  Reduction result = {};
  result.count = out.numel;
  result.size = 1;
  for (int d = self.ndim - 1; d >= 0; --d) {
    const bool is_reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (is_reduced) result.size *= self.sizes[d];
    if (self.sizes[d] == 1) continue;
    if (is_reduced) {
      reduced.sizes[reduced_count] = self.sizes[d];
      reduced.strides[0][reduced_count++] = self.strides[d];
    } else {
      kept.sizes[kept_count] = self.sizes[d];
      kept.strides[0][kept_count] = out.strides[d];
      kept.strides[1][kept_count++] = self.strides[d];
    }
  }
  kernel::merge_dims(kept, kept_count, kernel::Order::RowMajor);
  kernel::merge_dims(reduced, reduced_count, kernel::Order::RowMajor);
  if (kept.ndim > max_dimensions || reduced.ndim > max_dimensions) throw not_implemented();
  result.kept_ndim = kept.ndim;
  result.ndim = reduced.ndim;
  std::copy_n(kept.sizes, kept.ndim, result.kept_sizes);
  std::copy_n(kept.strides[0], kept.ndim, result.out_strides);
  std::copy_n(kept.strides[1], kept.ndim, result.kept_strides);
  std::copy_n(reduced.sizes, reduced.ndim, result.sizes);
  std::copy_n(reduced.strides[0], reduced.ndim, result.strides);
  result.out_offset = out.offset;
  result.offset = self.offset;
  return result;
}

Launch launch(const Call& call, const std::string& name, const Reduction& reduction) {
  const cb_tensor &out = call.output(), &self = call.tensor(0);
  Launch result(call, "reduction", name, {{"T", self.dtype}, {"R", out.dtype}});
  result.memory(out).memory(self).structure(reduction);
  return result;
}

// Few elements, or many outputs: an item for each output. Else a group, which also adds more
// exactly.
void reduce(Call& call, std::span<const int64_t> dims) {
  if (call.output().numel == 0) return;
  const Reduction reduction = reduction_of(call.output(), call.tensor(0), dims);
  const bool by_item = reduction.size <= 32;
  Launch kernel = launch(call, std::string(call.name()) + (by_item ? "_item" : "_group"), reduction);
  if (by_item)
    kernel.items(reduction.count);
  else
    kernel.groups(reduction.count);
}

std::vector<int64_t> all_dims(const cb_tensor& self) {
  std::vector<int64_t> dims(static_cast<size_t>(self.ndim));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  return dims;
}

// Operators whose argument 1 lists the dimensions.
void reduce_listed(Call& call) {
  if (call.given(1)) return reduce(call, call.ints(1));
  reduce(call, all_dims(call.tensor(0)));
}

void var(Call& call) {
  const arguments::Var args(call);
  if (call.output().numel == 0) return;
  const std::vector<int64_t> all = all_dims(*args.self);
  Reduction reduction = reduction_of(call.output(), *args.self, args.dim ? *args.dim : std::span<const int64_t>(all));
  reduction.parameters[0] = number_bits(args.correction ? args.correction->re : 1.0, args.self->dtype);
  launch(call, "var", reduction).groups(reduction.count);
}

void argument_extremum(Call& call) {
  if (call.output().numel == 0) return;
  const cb_tensor& self = call.tensor(0);
  const std::vector<int64_t> dims = call.given(1) ? std::vector{call.integer(1)} : all_dims(self);
  const Reduction reduction = reduction_of(call.output(), self, dims);
  // The program of the dtype itself: indices are int64 in all of them.
  Launch(call, "reduction", std::string(call.name()), {{"T", self.dtype}, {"R", self.dtype}})
      .memory(call.output())
      .memory(self)
      .structure(reduction)
      .items(reduction.count);
}

}  // namespace

void add_reduction(Table& table) {
  for (const char* name : {"sum", "prod", "amax", "amin", "any", "all"}) table.add<reduce_listed>(name, 0, real_dtypes);
  table.add<reduce_listed>("mean", 0, float_dtypes);
  table.add<var>("var", 0, float_dtypes);
  for (const char* name : {"argmax", "argmin"}) table.add<argument_extremum>(name, 0, real_dtypes & ~bool_dtype);
}

}  // namespace candelabra::opencl
