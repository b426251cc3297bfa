// scatter_reduce: elements with the same destination are combined in the order of the index. Half
// precisions are combined in float32 and rounded once.
#include "candelabra/arguments/indexing.hpp"
#include "drivers/element_offsets.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

Combination::Kind kind_named(std::string_view name) {
  if (name == "sum") return Combination::Sum;
  if (name == "prod") return Combination::Product;
  if (name == "mean") return Combination::Mean;
  return name == "amax" ? Combination::Largest : Combination::Smallest;
}

void scatter_reduce(Call& call) {
  const arguments::ScatterReduce args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.src, &out = call.output();
  Combination combination;
  combination.kind = kind_named(args.reduce);
  combination.with_self = args.include_self;
  if (index.numel > int64_t{0x7fffffff})
    throw failure(CB_RUNTIME_ERROR,
                  "%lld indices are more than one call can take on CUDA (2147483647): reduce in parts",
                  static_cast<long long>(index.numel));
  initialize_from(call, out, self);
  if (index.numel == 0) return;
  const ElementOffsets destinations(call, out, index, source, args.dim);
  const DeterministicScatterAdd scatter_add(call, index.numel, out.numel);
  int64_t first = 0;
  for_each_piece(destinations.geometry(), [&](const Geometry<4>& piece, const std::array<int64_t, 4>& offsets) {
    destinations.write(scatter_add, first, piece, offsets);
    first += piece.numel;
  });
  scatter_add.run(out, source.data, one_element(), no_factor(), nullptr, combination);
}

}  // namespace

void register_scatter_reduce(KernelTable& table) {
  table.add<scatter_reduce>("scatter_reduce");
}

}  // namespace candelabra::cuda
