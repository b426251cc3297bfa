// Offsets of operators with one index per element (gather, scatter and their relatives).
#pragma once

#include "drivers/iterate.hpp"
#include "drivers/scatter_add.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

// A view of a tensor over the index's sizes, without the indexed dimension: its stride is 0. `step`
// is the stride it had.
struct Seen {
  int64_t strides[max_dims];
  int64_t step = 0;
  cb_tensor tensor;

  Seen(const cb_tensor& original, const cb_tensor& index, int64_t dim) : tensor(original) {
    for (int d = 0; d < index.ndim; ++d) {
      strides[d] = is_number(original) || d == dim ? 0 : original.strides[d];
      if (d == dim && !is_number(original)) step = original.strides[d];
    }
    tensor.ndim = index.ndim;
    tensor.sizes = index.sizes;
    tensor.strides = strides;
    tensor.numel = index.numel;
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
};

// A descriptor with contiguous strides, whose offsets number the elements.
struct Numbered {
  int64_t strides[max_dims];
  cb_tensor tensor;

  explicit Numbered(const cb_tensor& of) : tensor(of) {
    int64_t step = 1;
    for (int d = of.ndim - 1; d >= 0; --d) strides[d] = step, step *= of.sizes[d];
    tensor.strides = strides;
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;
};

// Checks indices along a dimension.
struct Along {
  int64_t size;
  int dim;
  FaultSink sink;

  Along(const Call& call, const cb_tensor& indexed, int64_t along)
      : size(indexed.ndim ? indexed.sizes[along] : 1), dim(static_cast<int>(along)), sink(fault_sink(call)) {
    if (size == 0)
      throw failure(CB_RUNTIME_ERROR, "index is out of bounds for dimension %lld with size 0",
                    static_cast<long long>(along));
  }
#ifdef __CUDACC__
  __device__ int64_t checked(int64_t number) const {
    return sink.checked(number, dim, size, false, FaultKind::RuntimeIndex);
  }
#endif
};

// Offsets along a dimension of `out` at which the elements of `source` are accumulated, for the
// part that the index covers.
class ElementOffsets {
 public:
  ElementOffsets(const Call& call, const cb_tensor& out, const cb_tensor& index, const cb_tensor& source, int64_t dim);

  // Operands: the index, the output, the source, and the element numbers of the output.
  const Geometry<4>& geometry() const { return geometry_; }
  // Pair `first` + i of the scatter-add is element i of the piece.
  void write(const DeterministicScatterAdd& scatter_add, int64_t first, const Geometry<4>& piece,
             const std::array<int64_t, 4>& offsets) const;

 private:
  const Call& call_;
  const cb_tensor& index_;
  int64_t places_;
  Along along_;
  Numbered numbered_;
  Seen to_, key_;
  Geometry<4> geometry_;
};

// The slice of a scatter-add of single elements.
Geometry<2> one_element();

}  // namespace candelabra::cuda
