#include "drivers/reducer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "drivers/iterate.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "threads/interruption.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {
namespace {

// Size of a buffer through which columns are accumulated.
constexpr int64_t loaded_columns = 256, loaded_rows = 32;
// Values of one result that cost less than a call of blocks().
constexpr int64_t few_values = 16;
constexpr int64_t chunk_elements = 65536;            // elements per task if one result has many
constexpr int64_t half_page = 2048;                  // bytes
constexpr int64_t poll_elements = int64_t{1} << 22;  // of one result, between two polls

struct Plan {
  Geometry<2> kept;     // one element per result; operands: the input and the output
  Geometry<1> reduced;  // one element per input element of a result
  int64_t outputs = 1;
  int64_t length = 1;  // elements per result
  // values of one result are closer in memory than those of neighbouring results
  bool inner = true;

  // A dimension is reduced if the output has size 1 and the input has not. Complex elements may
  // count as pairs of real ones.
  Plan(const cb_tensor& in, const cb_tensor& out, Parts parts) {
    int64_t scale = parts == Parts::Whole ? 1 : 2;
    if (parts == Parts::Reduce) reduce(2, 1);
    bool all = out.ndim != in.ndim;
    for (int d = in.ndim - 1; d >= 0; --d) {
      if (all || out.sizes[d] != in.sizes[d])
        reduce(in.sizes[d], in.strides[d] * scale);
      else
        keep(in.sizes[d], in.strides[d] * scale, out.strides[d]);
    }
    kept.numel = outputs;
    reduced.numel = length;
    // Sums and maxima and minima may visit elements in memory order.
    kernel::merge_dims(kept, outputs ? kept_count : 0, Order::Any);
    kernel::merge_dims(reduced, length ? reduced_count : 0, Order::Any);
    if (length == 0) reduced.sizes[0] = 0;
    inner = kept_count == 0 || (length != 1 && distance(reduced.strides[0][0]) <= distance(kept.strides[0][0]));
    // Many results of few values each: transposing tiles costs less than one block per result.
    if (length <= few_values && reduced.flat() && kept.numel != 0 && kept.sizes[0] >= 16) inner = false;
  }

 private:
  void keep(int64_t size, int64_t in, int64_t out) {
    outputs *= size;
    if (size == 1) return;
    kept.sizes[kept_count] = size;
    kept.strides[0][kept_count] = in;
    kept.strides[1][kept_count++] = out;
  }
  void reduce(int64_t size, int64_t in) {
    length *= size;
    if (size == 1) return;
    reduced.sizes[reduced_count] = size;
    reduced.strides[0][reduced_count++] = in;
  }
  static int64_t distance(int64_t stride) {
    return stride == 0 ? std::numeric_limits<int64_t>::max() : std::abs(stride);
  }

  int kept_count = 0, reduced_count = 0;
};

template <typename Bits>
void gather_values(const char* from, int64_t stride, int64_t n, void* to, const void*) {
  const Bits* in = reinterpret_cast<const Bits*>(from);
  Bits* out = static_cast<Bits*>(to);
  if (stride == 2)  // every other element: the compiler loads whole vectors
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * 2];
  else if (std::abs(stride) * static_cast<int64_t>(sizeof(Bits)) >= half_page)
    // The hardware prefetcher does not cross pages.
    for (int64_t i = 0; i < n; ++i) {
      constexpr int64_t ahead = 32;
      __builtin_prefetch(in + std::min(i + ahead, n - 1) * stride);
      out[i] = in[i * stride];
    }
  else
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
}
inline Load gather_of(int64_t value_size) {
  Load gather = nullptr;
  dispatch_size(value_size, [&]<typename Bits>() { gather = gather_values<Bits>; });
  return gather;
}

class Reducer {
 public:
  Reducer(const Steps& steps, const Plan& plan, const Source& source, const Target& target)
      : steps_(steps),
        plan_(plan),
        source_(source),
        target_(target),
        load_(source.load ? source.load : gather_of(steps.value_size)) {
    direct_ = !source.load && (plan.inner ? plan.reduced.strides[0][0] : plan.kept.strides[0][0]) == 1;
  }

  void run() const {
    if (plan_.outputs == 0) return;
    if (plan_.inner)
      run_inner();
    else
      run_outer();
  }

 private:
  const char* address(int64_t offset) const { return source_.data + offset * source_.itemsize; }
  // Partial result i of an array.
  std::byte* partial(std::byte* results, int64_t i) const { return results + i * steps_.partial_size; }
  void store(const std::byte* results, int64_t count, int64_t at, int64_t stride) const {
    target_.store(target_, results, count, plan_.length, target_.data + at * target_.itemsize, stride);
  }

  // Accumulates n contiguous values.
  void accumulate_values(std::byte* result, const char* values, int64_t n, int64_t first) const {
    for (int64_t i = 0; i < n; i += block_length) {
      if (i % poll_elements == 0 && i > 0) poll_interruption();
      steps_.blocks(result, 1, values + i * steps_.value_size, 0, std::min(block_length, n - i), first + i);
    }
  }

  // Accumulates elements [begin, end) of the result whose input begins at `offset`.
  void accumulate_inner(std::byte* result, int64_t offset, int64_t begin, int64_t end) const {
    if (direct_ && plan_.reduced.flat()) return accumulate_values(result, address(offset + begin), end - begin, begin);
    int64_t stride = plan_.reduced.strides[0][0], first = begin;
    for_each_run(plan_.reduced, begin, end, [&](const int64_t* at, int64_t n) {
      const char* from = address(offset + at[0]);
      if (direct_) {
        accumulate_values(result, from, n, first);
      } else {
        alignas(64) std::byte buffer[block_length * largest_value];
        for (int64_t i = 0; i < n; i += block_length) {
          if (i % poll_elements == 0 && i > 0) poll_interruption();
          int64_t count = std::min(block_length, n - i);
          load_(from + i * stride * source_.itemsize, stride, count, buffer, source_.context);
          steps_.blocks(result, 1, buffer, 0, count, first + i);
        }
      }
      first += n;
    });
  }

  void run_inner() const {
    int64_t chunks = (plan_.length + chunk_elements - 1) / chunk_elements;
    if (plan_.outputs < 32 && chunks > 1) return run_inner_in_chunks(chunks);
    parallel_for(plan_.outputs, grain_for(plan_.length + 8), [&](int64_t begin, int64_t end) {
      constexpr int64_t batch = 64;
      alignas(64) std::byte results[batch * largest_partial];
      int64_t in_stride = plan_.kept.strides[0][0];
      for_each_run(plan_.kept, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; i += batch) {
          int64_t count = std::min(batch, n - i), offset = at[0] + i * in_stride;
          steps_.begin(results, count);
          if (direct_ && plan_.reduced.flat() && plan_.length <= block_length)
            steps_.blocks(results, count, address(offset), in_stride, plan_.length, 0);
          else if (results_interleave())
            accumulate_interleaved(results, count, offset, in_stride);
          else
            for (int64_t j = 0; j < count; ++j)
              accumulate_inner(partial(results, j), offset + j * in_stride, 0, plan_.length);
          store(results, count, at[1] + i * plan_.kept.strides[1][0], plan_.kept.strides[1][0]);
        }
      });
    });
  }

  // Whether runs of several results interleave in memory. They are then accumulated in memory
  // order.
  bool results_interleave() const {
    return direct_ && !plan_.reduced.flat() &&
           std::abs(plan_.kept.strides[0][0]) < std::abs(plan_.reduced.strides[0][1]);
  }
  void accumulate_interleaved(std::byte* results, int64_t count, int64_t offset, int64_t step) const {
    int64_t first = 0;
    for_each_run(plan_.reduced, 0, plan_.length, [&](const int64_t* at, int64_t n) {
      if (n <= block_length)
        steps_.blocks(results, count, address(offset + at[0]), step, n, first);
      else
        for (int64_t j = 0; j < count; ++j)
          accumulate_values(partial(results, j), address(offset + at[0] + j * step), n, first);
      first += n;
    });
  }

  // Accumulates each of `units` groups of at most `width` results in `chunks` parts, which are then
  // merged in order. accumulate(results, unit, chunk) begins with the identity element.
  template <typename Accumulate, typename Columns, typename Finish>
  void run_in_chunks(int64_t units, int64_t chunks, int64_t width, Accumulate&& accumulate, Columns&& columns,
                     Finish&& finish) const {
    Scratch<std::byte> partials(units * chunks * width * steps_.partial_size);
    parallel_for(units * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        accumulate(partial(partials.data(), task * width), task / chunks, task % chunks);
    });
    for (int64_t unit = 0; unit < units; ++unit) {
      std::byte* results = partial(partials.data(), unit * chunks * width);
      for (int64_t c = 1; c < chunks; ++c) steps_.merge(results, partial(results, c * width), columns(unit));
      finish(results, unit);
    }
  }

  void run_inner_in_chunks(int64_t chunks) const {
    // Of equal size, so that no thread waits for another.
    const int64_t each = ((plan_.length + chunks - 1) / chunks + block_length - 1) / block_length * block_length;
    run_in_chunks(
        plan_.outputs, chunks, 1,
        [&](std::byte* result, int64_t output, int64_t chunk) {
          const int64_t first = std::min(chunk * each, plan_.length);
          steps_.begin(result, 1);
          accumulate_inner(result, Position<2>(plan_.kept, output).offsets[0], first,
                           std::min(first + each, plan_.length));
        },
        [](int64_t) { return int64_t{1}; },
        [&](const std::byte* result, int64_t output) {
          store(result, 1, Position<2>(plan_.kept, output).offsets[1], 0);
        });
  }

  // Accumulates rows that lie `pitch` elements apart, column by column.
  void accumulate_rows(std::byte* results, int64_t offset, int64_t pitch, int64_t rows, int64_t columns, int64_t stride,
                       int64_t first) const {
    if (direct_) return steps_.rows(results, address(offset), pitch, rows, columns, first);
    alignas(64) std::byte buffer[loaded_rows * loaded_columns * largest_value];
    for (int64_t r = 0; r < rows; r += loaded_rows) {
      int64_t count = std::min(loaded_rows, rows - r);
      if (pitch == 1 && stride != 1)
        load_transposed(address(offset + r), stride, columns, count, buffer);
      else
        for (int64_t i = 0; i < count; ++i)
          load_(address(offset + (r + i) * pitch), stride, columns, buffer + i * columns * steps_.value_size,
                source_.context);
      steps_.rows(results, buffer, columns, count, columns, first + r);
    }
  }

  // Loads rows whose elements are contiguous from row to row: transposes tiles, then converts them
  // to values.
  void load_transposed(const char* from, int64_t stride, int64_t columns, int64_t rows, std::byte* to) const {
    dispatch_size(source_.itemsize, [&]<typename U>() {
      const U* elements = reinterpret_cast<const U*>(from);
      if (!source_.load) return transpose_bits(reinterpret_cast<U*>(to), columns, elements, stride, columns, rows);
      alignas(64) U transposed[loaded_rows * loaded_columns];
      transpose_bits(transposed, columns, elements, stride, columns, rows);
      load_(reinterpret_cast<const char*>(transposed), 1, rows * columns, to, source_.context);
    });
  }

  // Accumulates rows [begin, end) of columns that begin at `offset`.
  void accumulate_outer(std::byte* results, int64_t offset, int64_t columns, int64_t begin, int64_t end) const {
    int64_t stride = plan_.kept.strides[0][0], pitch = plan_.reduced.strides[0][0], first = begin;
    steps_.begin(results, columns);
    for_each_run(plan_.reduced, begin, end, [&](const int64_t* at, int64_t n) {
      int64_t from = offset + at[0];
      // Few contiguous columns: several rows are accumulated as one wide row, whose parts are
      // merged at the end.
      constexpr int64_t wide = 128;
      int64_t rows_per_step = wide / columns;
      if (!steps_.ordered && stride == 1 && pitch == columns && rows_per_step > 1 && n >= 16 * rows_per_step) {
        int64_t rows = n / rows_per_step, width = rows_per_step * columns;
        alignas(64) std::byte parts[wide * largest_partial];
        steps_.begin(parts, width);
        accumulate_rows(parts, from, width, rows, width, 1, first);
        for (int64_t k = 0; k < rows_per_step; ++k) steps_.merge(results, partial(parts, k * columns), columns);
        from += rows * width;
        first += rows * rows_per_step;
        n -= rows * rows_per_step;
      }
      if (n > 0) accumulate_rows(results, from, pitch, n, columns, stride, first);
      first += n;
    });
  }

  void run_outer() const {
    int64_t size = plan_.kept.sizes[0];
    int64_t width = std::min(size, direct_ ? tile_columns : loaded_columns);
    int64_t tiles = (size + width - 1) / width;
    int64_t units = tiles * (plan_.outputs / size);
    int64_t chunk_rows = std::max<int64_t>(1, chunk_elements / width);
    int64_t chunks = units >= 32 ? 1 : std::max<int64_t>(1, (plan_.length + chunk_rows - 1) / chunk_rows);
    int64_t rows = chunks == 1 ? plan_.length : chunk_rows;

    auto columns = [&](int64_t unit) { return std::min(width, size - unit % tiles * width); };
    auto position = [&](int64_t unit) { return Position<2>(plan_.kept, unit / tiles * size + unit % tiles * width); };
    auto accumulate = [&](std::byte* results, int64_t unit, int64_t chunk) {
      accumulate_outer(results, position(unit).offsets[0], columns(unit), chunk * rows,
                       std::min((chunk + 1) * rows, plan_.length));
    };
    auto finish = [&](const std::byte* results, int64_t unit) {
      store(results, columns(unit), position(unit).offsets[1], plan_.kept.strides[1][0]);
    };

    if (chunks == 1) {
      parallel_for(units, grain_for(width * (plan_.length + 1)), [&](int64_t begin, int64_t end) {
        alignas(64) std::byte results[tile_columns * largest_partial];
        for (int64_t unit = begin; unit < end; ++unit) {
          poll_interruption();
          accumulate(results, unit, 0);
          finish(results, unit);
        }
      });
      return;
    }
    run_in_chunks(units, chunks, width, accumulate, columns, finish);
  }

  const Steps& steps_;
  const Plan& plan_;
  const Source& source_;
  const Target& target_;
  Load load_;
  bool direct_;  // values are read in place
};

}  // namespace

void run(const Steps& steps, const cb_tensor& in, const cb_tensor& out, const Source& source, const Target& target,
         Parts parts) {
  // Fast path for all of a small tensor, as in most losses and checks. Planning would cost more
  // than the sum.
  if (out.numel == 1 && !source.load && parts == Parts::Whole && in.numel <= block_length && is_contiguous(in)) {
    alignas(64) std::byte result[largest_partial];
    steps.begin(result, 1);
    steps.blocks(result, 1, source.data, 0, in.numel, 0);
    target.store(target, result, 1, in.numel, target.data, 0);
    return;
  }
  Reducer(steps, Plan(in, out, parts), source, target).run();
}

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
