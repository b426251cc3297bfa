// The way all reductions go: which elements make up each result, in which order memory is read, and who reads it.
//
// An operation says how a block of values is taken up (`block`), how rows are taken up column by column (`rows`) and how two
// partial results become one (`merge`). It only ever sees values side by side; whatever lies in memory otherwise (strides, half
// precisions, complex numbers, a function applied first) is brought into a buffer in the first cache level by a Load function.
// Results are split by sizes alone, never by the number of threads.
//
//   struct Operation {
//     using Value = float;                                  // what block and rows read
//     struct Acc;                                           // a partial result
//     static constexpr bool ordered = false;                // true: rows must be taken up one after the other
//     static Acc identity();
//     static void block(Acc& acc, const Value* values, int64_t n, int64_t first);                  // n <= block_length
//     static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t first);
//     static void merge(Acc& acc, const Acc& later);
//     // Not needed: block() for `count` results at once, `pitch` values apart.
//     static void blocks(Acc* acc, int64_t count, const Value* values, int64_t pitch, int64_t n);
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../iterate.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

constexpr int64_t block_length = 2048;     // values that a block holds at most: two passes over it stay in the first cache level
constexpr int64_t tile_columns = 512;      // columns taken up together by rows()
constexpr int64_t loaded_columns = 256;    // the same where they go through a buffer,
constexpr int64_t loaded_rows = 32;        // of so many rows
constexpr int64_t few_values = 16;         // of one result: less than what a call of block() costs
constexpr int64_t chunk_elements = 65536;  // elements of one task where one result has many
constexpr int64_t half_page = 2048;        // bytes

enum class Parts { Whole, Keep, Reduce };  // complex elements as they are; as pairs with two results; as pairs into one result

struct Plan {
  Geometry<2> kept;     // one element a result; operands: the input and the output
  Geometry<1> reduced;  // one element an element of the input that makes up a result
  int64_t outputs = 1;
  int64_t length = 1;  // elements that make up one result
  bool inner = true;   // the values of one result lie side by side, rather than those of neighbouring results

  // A dimension is reduced where the output has size 1 and the input has not. Complex elements may count as pairs of real ones.
  Plan(const cb_tensor& in, const cb_tensor& out, Parts parts) {
    int64_t scale = parts == Parts::Whole ? 1 : 2;
    int64_t out_scale = parts == Parts::Keep ? 2 : 1;
    if (parts == Parts::Keep) keep(2, 1, 1);
    if (parts == Parts::Reduce) reduce(2, 1);
    bool all = out.ndim != in.ndim;
    for (int d = in.ndim - 1; d >= 0; --d) {
      if (all || out.sizes[d] != in.sizes[d])
        reduce(in.sizes[d], in.strides[d] * scale);
      else
        keep(in.sizes[d], in.strides[d] * scale, out.strides[d] * out_scale);
    }
    kept.numel = outputs;
    reduced.numel = length;
    // Sums and extrema may take their elements in the order of memory.
    kernel::merge_dims(kept, outputs ? kept_count : 0, Order::Any);
    kernel::merge_dims(reduced, length ? reduced_count : 0, Order::Any);
    if (length == 0) reduced.sizes[0] = 0;
    inner = kept_count == 0 || (length != 1 && distance(reduced.strides[0][0]) <= distance(kept.strides[0][0]));
    // Many results of few values each: a call for each would cost more than turning tiles of them around.
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
  static int64_t distance(int64_t stride) { return stride == 0 ? std::numeric_limits<int64_t>::max() : std::abs(stride); }

  int kept_count = 0, reduced_count = 0;
};

// Brings n elements, `stride` elements apart, side by side as values of the operation.
template <typename Value>
using Load = void (*)(const char* from, int64_t stride, int64_t n, Value* to, const void* context);

template <typename Value>
struct Source {
  const char* data;
  int64_t itemsize;            // of one element as strides count them
  Load<Value> load = nullptr;  // null: memory holds values
  const void* context = nullptr;
};

// Writes `count` results, each made of `length` elements, to memory.
template <typename Acc>
using Store = void (*)(const Acc* results, int64_t count, int64_t length, char* to, int64_t stride, const void* context);

template <typename Acc>
struct Target {
  char* data;
  int64_t itemsize;
  Store<Acc> store;
  const void* context = nullptr;
};

template <typename Value>
void gather_values(const char* from, int64_t stride, int64_t n, Value* to, const void*) {
  const Value* in = reinterpret_cast<const Value*>(from);
  if (stride == 2)  // every other one: whole vectors are loaded
    for (int64_t i = 0; i < n; ++i) to[i] = in[i * 2];
  else if (std::abs(stride) * static_cast<int64_t>(sizeof(Value)) >= half_page)
    // The processor does not ask ahead for what lies on other pages.
    for (int64_t i = 0; i < n; ++i) {
      constexpr int64_t ahead = 32;
      __builtin_prefetch(in + std::min(i + ahead, n - 1) * stride);
      to[i] = in[i * stride];
    }
  else
    for (int64_t i = 0; i < n; ++i) to[i] = in[i * stride];
}

template <typename Operation>
class Reducer {
  using Value = typename Operation::Value;
  using Acc = typename Operation::Acc;

 public:
  Reducer(const Plan& plan, const Source<Value>& source, const Target<Acc>& target)
      : plan_(plan), source_(source), target_(target), load_(source.load ? source.load : gather_values<Value>) {
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
  void store(const Acc* results, int64_t count, int64_t at, int64_t stride) const {
    target_.store(results, count, plan_.length, target_.data + at * target_.itemsize, stride, target_.context);
  }

  // Takes up elements [begin, end) of the result whose input begins at `offset`.
  void take_inner(Acc& acc, int64_t offset, int64_t begin, int64_t end) const {
    int64_t stride = plan_.reduced.strides[0][0], first = begin;
    if (direct_ && plan_.reduced.flat()) {
      const Value* values = reinterpret_cast<const Value*>(address(offset));
      for (int64_t i = begin; i < end; i += block_length) Operation::block(acc, values + i, std::min(block_length, end - i), i);
      return;
    }
    for_each_run(plan_.reduced, begin, end, [&](const int64_t* at, int64_t n) {
      const char* from = address(offset + at[0]);
      if (direct_) {
        const Value* values = reinterpret_cast<const Value*>(from);
        for (int64_t i = 0; i < n; i += block_length) Operation::block(acc, values + i, std::min(block_length, n - i), first + i);
      } else {
        alignas(64) Value buffer[block_length];
        for (int64_t i = 0; i < n; i += block_length) {
          int64_t count = std::min(block_length, n - i);
          load_(from + i * stride * source_.itemsize, stride, count, buffer, source_.context);
          Operation::block(acc, buffer, count, first + i);
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
      Acc results[batch];
      int64_t in_stride = plan_.kept.strides[0][0];
      for_each_run(plan_.kept, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; i += batch) {
          int64_t count = std::min(batch, n - i);
          for (int64_t j = 0; j < count; ++j) results[j] = Operation::identity();
          if (results_alternate())
            take_side_by_side(results, count, at[0] + i * in_stride, in_stride);
          else if (!take_together(results, count, at[0] + i * in_stride, in_stride))
            for (int64_t j = 0; j < count; ++j) take_inner(results[j], at[0] + (i + j) * in_stride, 0, plan_.length);
          store(results, count, at[1] + i * plan_.kept.strides[1][0], plan_.kept.strides[1][0]);
        }
      });
    });
  }

  // Several results of one block each, where the operation takes them up together.
  bool take_together([[maybe_unused]] Acc* results, [[maybe_unused]] int64_t count, [[maybe_unused]] int64_t offset,
                     [[maybe_unused]] int64_t step) const {
    if constexpr (requires { &Operation::blocks; }) {
      if (!direct_ || !plan_.reduced.flat() || plan_.length > block_length) return false;
      Operation::blocks(results, count, reinterpret_cast<const Value*>(address(offset)), step, plan_.length);
      return true;
    }
    return false;
  }

  // Whether the runs of several results lie between those of one: then they are taken up in the order of memory.
  bool results_alternate() const {
    return direct_ && !plan_.reduced.flat() && std::abs(plan_.kept.strides[0][0]) < std::abs(plan_.reduced.strides[0][1]);
  }
  void take_side_by_side(Acc* results, int64_t count, int64_t offset, int64_t step) const {
    int64_t first = 0;
    for_each_run(plan_.reduced, 0, plan_.length, [&](const int64_t* at, int64_t n) {
      for (int64_t j = 0; j < count; ++j) {
        const Value* values = reinterpret_cast<const Value*>(address(offset + at[0] + j * step));
        for (int64_t i = 0; i < n; i += block_length)
          Operation::block(results[j], values + i, std::min(block_length, n - i), first + i);
      }
      first += n;
    });
  }

  void run_inner_in_chunks(int64_t chunks) const {
    Scratch<Acc> partial(plan_.outputs * chunks);
    // Of one size, so that no thread waits for another.
    const int64_t each = ((plan_.length + chunks - 1) / chunks + block_length - 1) / block_length * block_length;
    parallel_for(plan_.outputs * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = std::min(task % chunks * each, plan_.length);
        Acc acc = Operation::identity();
        take_inner(acc, Position<2>(plan_.kept, task / chunks).offsets[0], first, std::min(first + each, plan_.length));
        partial[task] = acc;
      }
    });
    for (int64_t i = 0; i < plan_.outputs; ++i) {
      Acc acc = partial[i * chunks];
      for (int64_t c = 1; c < chunks; ++c) Operation::merge(acc, partial[i * chunks + c]);
      store(&acc, 1, Position<2>(plan_.kept, i).offsets[1], 0);
    }
  }

  // Takes up rows of columns that lie `pitch` elements apart.
  void take_rows(Acc* acc, int64_t offset, int64_t pitch, int64_t rows, int64_t columns, int64_t stride, int64_t first) const {
    if (direct_) {
      Operation::rows(acc, reinterpret_cast<const Value*>(address(offset)), pitch, rows, columns, first);
      return;
    }
    alignas(64) Value buffer[loaded_rows * loaded_columns];
    for (int64_t r = 0; r < rows; r += loaded_rows) {
      int64_t count = std::min(loaded_rows, rows - r);
      for (int64_t i = 0; i < count; ++i)
        load_(address(offset + (r + i) * pitch), stride, columns, buffer + i * columns, source_.context);
      Operation::rows(acc, buffer, columns, count, columns, first + r);
    }
  }

  // Takes up rows [begin, end) of columns that begin at `offset`.
  void take_outer(Acc* acc, int64_t offset, int64_t columns, int64_t begin, int64_t end) const {
    int64_t stride = plan_.kept.strides[0][0], pitch = plan_.reduced.strides[0][0], first = begin;
    for (int64_t j = 0; j < columns; ++j) acc[j] = Operation::identity();
    for_each_run(plan_.reduced, begin, end, [&](const int64_t* at, int64_t n) {
      int64_t from = offset + at[0];
      if constexpr (!Operation::ordered) {
        // Few columns in rows without gaps: several rows are taken up as one wide row, whose parts are merged at the end.
        constexpr int64_t wide = 128;
        int64_t together = wide / columns;
        if (stride == 1 && pitch == columns && together > 1 && n >= 4 * together) {
          int64_t rows = n / together, width = together * columns;
          Acc parts[wide];
          for (int64_t j = 0; j < width; ++j) parts[j] = Operation::identity();
          take_rows(parts, from, width, rows, width, 1, first);
          for (int64_t j = 0; j < width; ++j) Operation::merge(acc[j % columns], parts[j]);
          from += rows * width;
          first += rows * together;
          n -= rows * together;
        }
      }
      if (n > 0) take_rows(acc, from, pitch, n, columns, stride, first);
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
    auto take = [&](Acc* acc, int64_t unit, int64_t chunk) {
      take_outer(acc, position(unit).offsets[0], columns(unit), chunk * rows, std::min((chunk + 1) * rows, plan_.length));
    };
    auto finish = [&](const Acc* acc, int64_t unit) {
      store(acc, columns(unit), position(unit).offsets[1], plan_.kept.strides[1][0]);
    };

    if (chunks == 1) {
      parallel_for(units, grain_for(width * (plan_.length + 1)), [&](int64_t begin, int64_t end) {
        Acc acc[tile_columns];
        for (int64_t unit = begin; unit < end; ++unit) {
          take(acc, unit, 0);
          finish(acc, unit);
        }
      });
      return;
    }
    Scratch<Acc> partial(units * chunks * width);
    parallel_for(units * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) take(partial.data() + task * width, task / chunks, task % chunks);
    });
    for (int64_t unit = 0; unit < units; ++unit) {
      Acc* acc = partial.data() + unit * chunks * width;
      for (int64_t c = 1; c < chunks; ++c)
        for (int64_t j = 0; j < columns(unit); ++j) Operation::merge(acc[j], acc[c * width + j]);
      finish(acc, unit);
    }
  }

  const Plan& plan_;
  const Source<Value>& source_;
  const Target<Acc>& target_;
  bool direct_;
  Load<Value> load_;
};

template <typename Operation>
void run(const cb_tensor& in, const cb_tensor& out, const Source<typename Operation::Value>& source,
         const Target<typename Operation::Acc>& target, Parts parts = Parts::Whole) {
  using Acc = typename Operation::Acc;
  // The whole of a small tensor: the way of most losses and checks, where planning would cost more than adding.
  if (out.numel == 1 && !source.load && parts == Parts::Whole && in.numel <= block_length && is_contiguous(in)) {
    Acc acc = Operation::identity();
    Operation::block(acc, reinterpret_cast<const typename Operation::Value*>(source.data), in.numel, 0);
    target.store(&acc, 1, in.numel, target.data, 0, target.context);
    return;
  }
  Reducer<Operation>(Plan(in, out, parts), source, target).run();
}

// ---- loading ------------------------------------------------------------------------------------------------------------------

// Elements of type T as values, each passed through Function.
template <typename T, typename Value, typename Function>
void load_through(const char* from, int64_t stride, int64_t n, Value* to, const void* context) {
  const T* in = reinterpret_cast<const T*>(from);
  Function function(context);
  if constexpr (is_half_v<T> && std::is_same_v<Value, float>) {
    if (stride == 1) {
      to_float(in, to, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = function(to[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = function(static_cast<float>(in[i * stride]));
  } else {
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Value>(function(in[i]));
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Value>(function(in[i * stride]));
  }
}

struct Unchanged {
  explicit Unchanged(const void*) {}
  template <typename T>
  T operator()(T value) const {
    return value;
  }
};

// T as Value; nothing needs doing where they are the same.
template <typename T, typename Value>
Source<Value> source_of(const cb_tensor& tensor) {
  if constexpr (std::is_same_v<T, Value>)
    return {static_cast<const char*>(tensor.data), sizeof(T)};
  else
    return {static_cast<const char*>(tensor.data), sizeof(T), load_through<T, Value, Unchanged>};
}

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
