// Additions to places that repeat (index_add, scatter_add, the gradient of embedding), and
// products, means and extremes of what goes to one place (scatter_reduce): always in the same
// order.
//
// A pair is a slab of elements that is added to another. Pairs are sorted by where they go; then
// stretches of them are summed apart from one another, and the sums of a place that reaches over
// several stretches are added in their order.
#pragma once

#include <cstdint>

#include "drivers/iterate.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

// What is done at a place instead of a plain addition.
struct Combination {
  enum Kind : int32_t { Sum, Product, Mean, Largest, Smallest } kind = Sum;
  bool with_self = true;  // what is at the place already counts, too
};

class DeterministicScatterAdd {
 public:
  // At most 2^31 - 1 pairs; keys are numbers of places below `places`, and `places` itself for a
  // pair that is left out.
  DeterministicScatterAdd(const Call& call, int64_t count, int64_t places);

  // For pair j, in device memory, to be written by the caller: the key of its place, and the
  // offsets of both slabs.
  uint64_t* keys() const { return memory_.as<uint64_t>(); }
  int64_t* to() const { return memory_.as<int64_t>(static_cast<size_t>(16 * count_)); }
  int64_t* from() const { return memory_.as<int64_t>(static_cast<size_t>(24 * count_)); }

  // out += factor * source, slab by slab; operands of `slab` are the output and the source.
  // `weights`, where they are given, are one more factor for each pair, in device memory, of the
  // type that out is computed in.
  void run(const cb_tensor& out, const void* source, const Geometry<2>& slab, const cb_scalar& factor,
           const void* weights = nullptr, const Combination& combination = {}) const;

 private:
  const Call& call_;
  int64_t count_, places_;
  Workspace memory_;
};

// The factor of additions that have none.
inline cb_scalar no_factor() {
  cb_scalar one{};
  one.kind = CB_SCALAR_INT;
  one.i = 1;
  one.re = 1;
  return one;
}

}  // namespace candelabra::cuda
