// Deterministic scatter-add (index_add, scatter_add, the gradient of embedding), and scatter-reduce
// by product, mean, maximum and minimum. The order of operations is always the same.
//
// A pair is a slice of the source that is added to a slice of the output. Pairs are sorted by the
// key of their output slice. Threads then sum stretches of pairs independently; sums of a key that
// spans several stretches are added in order.
#pragma once

#include <cstdint>

#include "drivers/iterate.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

// The operation that replaces the sum.
struct Combination {
  enum Kind : int32_t { Sum, Product, Mean, Largest, Smallest } kind = Sum;
  bool with_self = true;  // the output's old value is included
};

class DeterministicScatterAdd {
 public:
  // At most 2^31 - 1 pairs. Keys are below `places`; a pair with the key `places` is skipped.
  DeterministicScatterAdd(const Call& call, int64_t count, int64_t places);

  // Device memory that the caller fills: for pair j its key, and the offsets of both slices.
  uint64_t* keys() const { return memory_.as<uint64_t>(); }
  int64_t* to() const { return memory_.as<int64_t>(static_cast<size_t>(16 * count_)); }
  int64_t* from() const { return memory_.as<int64_t>(static_cast<size_t>(24 * count_)); }

  // out += factor * source for each pair; the operands of `slice` are the output and the source.
  // `weights`, if given, are one more factor per pair, in device memory, of the type that `out` is
  // computed in.
  void run(const cb_tensor& out, const void* source, const Geometry<2>& slice, const cb_scalar& factor,
           const void* weights = nullptr, const Combination& combination = {}) const;

 private:
  const Call& call_;
  int64_t count_, places_;
  Workspace memory_;
};

// A factor of 1.
inline cb_scalar no_factor() {
  cb_scalar one{};
  one.kind = CB_SCALAR_INT;
  one.i = 1;
  one.re = 1;
  return one;
}

}  // namespace candelabra::cuda
