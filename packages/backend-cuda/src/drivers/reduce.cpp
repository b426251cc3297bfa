#include "drivers/reduce.hpp"

#include "drivers/elementwise.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda::reduction {

namespace {

int power_of_two_above(int64_t value, int most) {
  int power = 1;
  while (power < value && power < most) power *= 2;
  return power;
}

}  // namespace

template <int Outs>
void run_parts(const Call& call, const Task<Outs>& task, Launcher<Outs> launcher, const void* op) {
  const int vec = vector_of(static_cast<size_t>(task.in_size));
  const Plan<Outs> plan(*task.in, task.outs, task.ordered ? Order::RowMajor : Order::Any);
  if (plan.results == 0) return;
  elementwise::check_alignment(*task.in, static_cast<size_t>(task.in_size));

  // Threads of a block along the elements of a result, and along results. Each thread has several
  // elements to load at a time.
  const int64_t each = plan.inner && plan.reduced.strides[0][0] == 1 ? std::max(2 * vec, 4) : 4;
  const int ranks = power_of_two_above(divide_up(plan.length, each), plan.inner ? threads : 8), slots = threads / ranks;
  const int64_t blocks = divide_up(plan.results, slots);
  const int64_t wanted = static_cast<int64_t>(device_traits(call.device()).multiprocessors) * blocks_per_multiprocessor;
  const int64_t parts = std::max<int64_t>(1, std::min(divide_up(plan.length * slots, least_work), wanted / blocks));
  const int64_t share = std::min<int64_t>(divide_up(std::max<int64_t>(plan.length, 1), parts), int64_t{1} << 30);
  const int64_t unit = plan.inner ? int64_t{vec} * ranks : ranks;  // whole packets
  const int64_t chunk = divide_up(share, unit) * unit;

  // Chunks of all pieces (one piece, unless the length needs more than 31 bits).
  int64_t chunks = 0;
  for_each_piece(
      plan.reduced,
      [&](const Geometry<1>& piece, const std::array<int64_t, 1>&) { chunks += divide_up(piece.numel, chunk); },
      Pieces::InOrder);
  const bool several = chunks > 1;
  if (several && (plan.results > UINT32_MAX || chunks > UINT32_MAX))
    throw failure(CB_RUNTIME_ERROR, "a reduction to %lld results of %lld elements each is too large",
                  static_cast<long long>(plan.results), static_cast<long long>(plan.length));
  Workspace partial;
  if (several)
    partial = Workspace(call, static_cast<size_t>(plan.results) * static_cast<size_t>(chunks) * task.accumulator_size);

  uint32_t first_result = 0;
  for_each_piece(plan.kept, [&](const Geometry<1 + Outs>& kept, const std::array<int64_t, 1 + Outs>& offsets) {
    Part<Outs> part{};
    for (size_t k = 0; k < Outs; ++k)
      part.outs[k] = static_cast<char*>(task.outs[k]->data) + offsets[1 + k] * task.out_sizes[k];
    part.kept = Indexer<1 + Outs>(kept);
    part.length = plan.length;
    part.chunk = static_cast<uint32_t>(chunk);
    part.chunks = static_cast<uint32_t>(chunks);
    part.results_in_all = static_cast<uint32_t>(several ? plan.results : 0);
    part.first_result = first_result;
    part.partial = partial.data();
    const auto send = [&](const Geometry<1>& piece, int64_t offset) {
      part.in = static_cast<const char*>(task.in->data) + (offsets[0] + offset) * task.in_size;
      part.reduced = Indexer<1>(piece);
      bool packed = vec > 1 && plan.inner && piece.ndim == 1 && piece.strides[0][0] == 1 && piece.numel >= vec &&
                    reinterpret_cast<uintptr_t>(part.in) % 16 == 0;
      for (int d = 0; d < kept.ndim; ++d) packed &= kept.sizes[d] == 1 || kept.strides[0][d] % vec == 0;
      const auto along = static_cast<unsigned>(ranks), beside = static_cast<unsigned>(slots);
      const dim3 grid(static_cast<unsigned>(divide_up(kept.numel, slots)),
                      static_cast<unsigned>(std::max<int64_t>(1, divide_up(piece.numel, chunk))));
      launcher(call, op, part,
               {!plan.inner ? Kind::Columns
                : packed    ? Kind::PackedRows
                            : Kind::Rows,
                grid, plan.inner ? dim3(along, beside) : dim3(beside, along)});
      part.first += piece.numel;
      part.first_chunk += grid.y;
    };
    if (plan.length == 0)
      send(plan.reduced, 0);
    else
      for_each_piece(
          plan.reduced, [&](const Geometry<1>& piece, const std::array<int64_t, 1>& at) { send(piece, at[0]); },
          Pieces::InOrder);
    if (several) {
      const int beside = threads / power_of_two_above(chunks, threads / power_of_two_above(kept.numel, 32));
      launcher(call, op, part,
               {Kind::Merge, dim3(static_cast<unsigned>(divide_up(kept.numel, beside))),
                dim3(static_cast<unsigned>(beside), static_cast<unsigned>(threads / beside))});
    }
    first_result += static_cast<uint32_t>(kept.numel);
  });
}

template void run_parts<1>(const Call&, const Task<1>&, Launcher<1>, const void*);
template void run_parts<2>(const Call&, const Task<2>&, Launcher<2>, const void*);

}  // namespace candelabra::cuda::reduction
