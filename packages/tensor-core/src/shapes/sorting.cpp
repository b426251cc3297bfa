// Sorting and selection along one dimension.
#include <algorithm>
#include <cmath>
#include <span>

#include "candelabra/float_index.hpp"
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Adds values and indices of these sizes.
void add_sorted(Call& call, int self_argument, const Dims& sizes) {
  const TensorObject& self = call.tensor(self_argument);
  check(!is_complex(self.dtype), PyExc_RuntimeError, base_name(call), "(): complex dtypes have no order, but got ",
        info(self.dtype).type_name, "; sort by real part or abs() instead");
  for (Dtype dtype : {self.dtype, Dtype::Int64}) call.add_output(dtype, sizes).inserted = scalar_inserted_dims(self);
  unsqueeze_scalar(call, self_argument);
}

}  // namespace

void sort(Call& call) {
  namespace at = positions::sort;
  const TensorObject& self = call.tensor(at::self);
  call.dim(at::dim, self.ndim());
  add_sorted(call, at::self, self.sizes);
  if (self.contiguous) return;
  for (int i = 0; i < 2; ++i) call.outputs[i].strides = preserved_strides(self);
}

void topk(Call& call) {
  namespace at = positions::topk;
  const TensorObject& self = call.tensor(at::self);
  check(self.dtype != Dtype::Bool, PyExc_RuntimeError,
        "topk(): topk does not support bool dtypes; convert with .to(candelabra.uint8)");
  const int dim = call.dim(at::dim, self.ndim());
  const int64_t k = call.integer(at::k), count = self.ndim() == 0 ? 1 : self.sizes[dim];
  check(k >= 0 && k <= count, PyExc_RuntimeError, "topk(): selected index k out of range: k is ", k, ", and dimension ",
        dim, " of shape ", shown(self.sizes), " has ", count, " elements");
  Dims sizes = self.sizes;
  if (self.ndim() == 0) {
    call.set_int(at::k, 1);  // k may be 0, but a result without dimensions has one element
  } else {
    sizes[dim] = k;
  }
  add_sorted(call, at::self, sizes);
}

// The index of the element of this rank, or of the median.
void kthvalue_index(Call& call) {
  namespace at = positions::kthvalue_index;
  const TensorObject& self = call.tensor(at::self);
  check(!is_complex(self.dtype), PyExc_NotImplementedError, "\"median\" not implemented for '",
        info(self.dtype).type_name, "'");
  check(self.ndim() > 0, PyExc_RuntimeError, base_name(call), "(): expected a tensor of at least one dimension");
  const int dim = call.dim(at::dim, self.ndim());
  const std::string_view among = call[at::among].string;
  check(among == "all" || among == "median" || among == "nanmedian", PyExc_ValueError, base_name(call),
        "(): among must be all, median or nanmedian, but got ", among);
  check(self.sizes[dim] > 0, PyExc_IndexError, base_name(call), "(): Expected reduction dim ", dim,
        " to have non-zero size.");
  const int64_t rank = call.integer(at::rank);
  check(among != "all" || (rank >= 0 && rank < self.sizes[dim]), PyExc_RuntimeError, base_name(call), "(): rank ", rank,
        " out of range for dimension ", dim, " of size ", self.sizes[dim]);
  Dims sizes = self.sizes;
  sizes[dim] = 1;
  call.add_output(Dtype::Int64, std::move(sizes));
}

// The index of the most frequent element.
void mode_index(Call& call) {
  namespace at = positions::mode_index;
  const TensorObject& self = call.tensor(at::self);
  check(!is_complex(self.dtype), PyExc_NotImplementedError, "\"mode\" not implemented for '",
        info(self.dtype).type_name, "'");
  check(self.ndim() > 0, PyExc_RuntimeError, "mode(): expected a tensor of at least one dimension");
  const int dim = call.dim(at::dim, self.ndim());
  check(self.sizes[dim] > 0, PyExc_IndexError, "mode(): Expected reduction dim ", dim, " to have non-zero size.");
  Dims sizes = self.sizes;
  sizes[dim] = 1;
  call.add_output(Dtype::Int64, std::move(sizes));
}

// _histc: counts of the elements in `bins` bins of equal width between `low` and `high`.
void histc(Call& call) {
  namespace at = positions::histc;
  const Dtype dtype = call.tensor(at::self).dtype;
  check(is_floating(dtype), PyExc_NotImplementedError, '"', base_name(call), "\" not implemented for '",
        info(dtype).type_name, "'");
  const int64_t bins = call.integer(at::bins), most_bins = EqualBins<double>::most_bins;
  check(bins > 0, PyExc_RuntimeError, base_name(call), "(): bins must be > 0, but got ", bins);
  check(bins <= most_bins, PyExc_RuntimeError, base_name(call), "(): ", bins, " bins are too many, expected at most ",
        most_bins, "; count parts of the range");
  const double low = call[at::low].f, high = call[at::high].f;
  check(std::isfinite(low) && std::isfinite(high), PyExc_RuntimeError, "histc(): range of [", low, ", ", high,
        "] is not finite");
  for (double end : {low, high}) check_number_fits({CB_SCALAR_FLOAT, 0, 0, end, 0, 0}, dtype, true);
  check(low < high, PyExc_RuntimeError, "max must be larger than min");
  call.add_output(dtype, Dims{bins});
}

// _searchsorted: for each value, its index in a sorted sequence. There is one sequence for all
// values, or one for each row of them.
void searchsorted(Call& call) {
  namespace at = positions::searchsorted;
  const Dtype dtype = promote_dtypes(call, {at::sorted_sequence, at::values});
  if (is_complex(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
  const TensorObject &sequence = call.tensor(at::sorted_sequence), &values = call.tensor(at::values);
  const auto rows = [](const TensorObject& tensor) {
    return std::span<const int64_t>(tensor.sizes).first(static_cast<size_t>(std::max(tensor.ndim() - 1, 0)));
  };
  const bool fits = sequence.ndim() == 1 || (sequence.ndim() == values.ndim() && sequence.ndim() != 0 &&
                                             std::ranges::equal(rows(sequence), rows(values)));
  check(fits, PyExc_RuntimeError,
        "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
        "input value "
        "tensor must match, but we got boundaries tensor ",
        shown(sequence.sizes), " and input value tensor ", shown(values.sizes));
  if (call[at::sorter].given()) {
    const TensorObject& sorter = call.tensor(at::sorter);
    check(sorter.sizes == sequence.sizes, PyExc_RuntimeError,
          "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
          shown(sequence.sizes), " and got sorter tensor ", shown(sorter.sizes));
    check(sorter.dtype == Dtype::Int64, PyExc_RuntimeError,
          "searchsorted(): sorter must be a tensor of long dtype but got dtype ", info(sorter.dtype).name);
    call.make_contiguous(at::sorter);
  }
  const Dims sizes = values.sizes;
  for (int i : {at::sorted_sequence, at::values}) {
    call.convert(i, dtype);
    call.make_contiguous(i);
  }
  call.add_output(call.boolean(at::out_int32) ? Dtype::Int32 : Dtype::Int64, sizes);
}

}  // namespace candelabra::shapes
