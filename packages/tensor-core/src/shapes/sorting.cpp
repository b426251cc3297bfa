// Sorting and selection along one dimension.
#include <algorithm>
#include <cmath>
#include <span>

#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void sorted_results(Call& call, const Dims& sizes) {
  const TensorObject& self = call.tensor(0);
  check(!is_complex(self.dtype), PyExc_RuntimeError, base_name(call), "(): complex dtypes have no order, but got ",
        info(self.dtype).type_name, "; sort by real part or abs() instead");
  for (Dtype dtype : {self.dtype, Dtype::Int64}) call.add_output(dtype, sizes).inserted = inserted_dimension(self);
  see_dimension(call, 0);
}

}  // namespace

void sort(Call& call) {
  const TensorObject& self = call.tensor(0);
  call.dim(1, self.ndim());
  sorted_results(call, self.sizes);
  if (self.contiguous) return;
  for (int i = 0; i < 2; ++i) call.outputs[i].strides = preserved_strides(self);
}

void topk(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(self.dtype != Dtype::Bool, PyExc_RuntimeError,
        "topk(): topk does not support bool dtypes; convert with .to(candelabra.uint8)");
  const int dim = call.dim(2, self.ndim());
  const int64_t k = call.integer(1), count = self.ndim() == 0 ? 1 : self.sizes[dim];
  check(k >= 0 && k <= count, PyExc_RuntimeError, "topk(): selected index k out of range: k is ", k, ", and dimension ", dim,
        " of shape ", shown(self.sizes), " has ", count, " elements");
  Dims sizes = self.sizes;
  if (self.ndim() == 0) {
    call.set_int(1, 1);  // a result without dimensions holds one element
  } else {
    sizes[dim] = k;
  }
  sorted_results(call, sizes);
}

// order_position(self, dim, rank, among)
void order_position(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(!is_complex(self.dtype), PyExc_NotImplementedError, "\"median\" not implemented for '", info(self.dtype).type_name, "'");
  check(self.ndim() > 0, PyExc_RuntimeError, base_name(call), "(): expected a tensor of at least one dimension");
  const int dim = call.dim(1, self.ndim());
  const std::string_view among = call[3].string;
  check(among == "all" || among == "median" || among == "nanmedian", PyExc_ValueError, base_name(call),
        "(): among must be all, median or nanmedian, but got ", among);
  check(self.sizes[dim] > 0, PyExc_IndexError, base_name(call), "(): Expected reduction dim ", dim, " to have non-zero size.");
  check(among != "all" || (call.integer(2) >= 0 && call.integer(2) < self.sizes[dim]), PyExc_RuntimeError, base_name(call),
        "(): rank ", call.integer(2), " out of range for dimension ", dim, " of size ", self.sizes[dim]);
  Dims sizes = self.sizes;
  sizes[dim] = 1;
  call.add_output(Dtype::Int64, std::move(sizes));
}

// mode_position(self, dim)
void mode_position(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(!is_complex(self.dtype), PyExc_NotImplementedError, "\"mode\" not implemented for '", info(self.dtype).type_name, "'");
  check(self.ndim() > 0, PyExc_RuntimeError, "mode(): expected a tensor of at least one dimension");
  const int dim = call.dim(1, self.ndim());
  check(self.sizes[dim] > 0, PyExc_IndexError, "mode(): Expected reduction dim ", dim, " to have non-zero size.");
  Dims sizes = self.sizes;
  sizes[dim] = 1;
  call.add_output(Dtype::Int64, std::move(sizes));
}

// count_in_bins(self, bins, low, high)
void count_in_bins(Call& call) {
  const Dtype dtype = call.tensor(0).dtype;
  check(is_floating(dtype), PyExc_NotImplementedError, '"', base_name(call), "\" not implemented for '", info(dtype).type_name,
        "'");
  check(call.integer(1) > 0, PyExc_RuntimeError, base_name(call), "(): bins must be > 0, but got ", call.integer(1));
  const double low = call[2].f, high = call[3].f;
  check(std::isfinite(low) && std::isfinite(high), PyExc_RuntimeError, "histc(): range of [", low, ", ", high, "] is not finite");
  for (double end : {low, high}) check_number_fits({CB_SCALAR_FLOAT, 0, 0, end, 0}, dtype, true);
  check(low < high, PyExc_RuntimeError, "max must be larger than min");
  call.add_output(dtype, Dims{call.integer(1)});
}

// bisect(sorted_sequence, values, right, out_int32, sorter)
void bisect(Call& call) {
  const Dtype dtype = promoted(call, {0, 1});
  if (is_complex(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
  const TensorObject &sequence = call.tensor(0), &values = call.tensor(1);
  const auto rows = [](const TensorObject& tensor) {
    return std::span<const int64_t>(tensor.sizes).first(static_cast<size_t>(std::max(tensor.ndim() - 1, 0)));
  };
  const bool fits = sequence.ndim() == 1 ||
                    (sequence.ndim() == values.ndim() && sequence.ndim() != 0 && std::ranges::equal(rows(sequence), rows(values)));
  check(fits, PyExc_RuntimeError,
        "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
        "tensor must match, but we got boundaries tensor ",
        shown(sequence.sizes), " and input value tensor ", shown(values.sizes));
  if (call[4].given()) {
    const TensorObject& sorter = call.tensor(4);
    check(sorter.sizes == sequence.sizes, PyExc_RuntimeError,
          "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ", shown(sequence.sizes),
          " and got sorter tensor ", shown(sorter.sizes));
    check(sorter.dtype == Dtype::Int64, PyExc_RuntimeError, "searchsorted(): sorter must be a tensor of long dtype but got dtype ",
          info(sorter.dtype).name);
    call.make_contiguous(4);
  }
  const Dims sizes = values.sizes;
  for (int i : {0, 1}) {
    call.convert(i, dtype);
    call.make_contiguous(i);
  }
  call.add_output(call.boolean(3) ? Dtype::Int32 : Dtype::Int64, sizes);
}

}  // namespace candelabra::shapes
