#include "drivers/blocks.hpp"

#include <algorithm>
#include <optional>

#include "drivers/iterate.hpp"
#include "drivers/loop_capture.hpp"
#include "memory/copy_bytes.hpp"
#include "memory/gather.hpp"
#include "memory/move_rows.hpp"
#include "memory/transpose.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
namespace {

constexpr int64_t block_bytes = 8192;
// Block size for operands in the outer caches or in memory. Smaller blocks let out-of-order
// execution overlap one block's computation with another's loads. The next block is prefetched.
constexpr int64_t far_block_bytes = 2048;
constexpr int64_t far_bytes = int64_t{1} << 20;

void prefetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(from + i, _MM_HINT_T0);
}

// Rows of at least this many elements are processed one by one. Shorter rows are packed, several to
// a block, to fill registers. The second limit applies if an input is broadcast along the row.
constexpr int64_t row_elements = 64, broadcast_row_elements = 256;

void scatter(void* out, int64_t stride, const void* in, int64_t itemsize, int64_t n) {
  dispatch_size(itemsize, [&]<typename U>() {
    U* to = static_cast<U*>(out);
    const U* from = static_cast<const U*>(in);
    for (int64_t i = 0; i < n; ++i) to[i * stride] = from[i];
  });
}

WideningConversions conversions = widening_conversions;

// Writes each of `rows` values `length` times.
template <typename U>
void repeat_in_rows(U* to, const U* from, int64_t stride, int64_t rows, int64_t length) {
  constexpr int64_t size = sizeof(__m256i) / sizeof(U);
  for (int64_t r = 0; r < rows; ++r, to += length, from += stride) {
    U numbers[size];
    std::fill_n(numbers, size, *from);
    __m256i line;
    std::memcpy(&line, numbers, sizeof line);
    // The last store overlaps the one before it.
    int64_t i = 0;
    for (; i + size <= length; i += size) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), line);
    if (i < length && length >= size) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + length - size), line);
    if (length < size) std::fill_n(to, length, numbers[0]);
  }
}

// Operand 0 is the output.
template <int N>
class Driver {
 public:
  Driver(const Blocks& blocks, const std::array<const cb_tensor*, N>& operands)
      : blocks_(blocks), g_(geometry<N>(operands)) {
    int64_t widest = 1;
    bool in_place = false;
    for (int k = 0; k < N; ++k) {
      data_[k] = static_cast<std::byte*>(operands[k]->data);
      dtype_[k] = operands[k]->dtype;
      size_[k] = itemsize(dtype_[k]);
      half_[k] = blocks.halves_as_float && is_widened_dtype(dtype_[k]);
      wide_[k] = half_[k] ? itemsize(loop_dtype(dtype_[k])) : size_[k];
      widest = std::max(widest, wide_[k]);
      constant_[k] = k > 0;
      for (int d = 0; d < g_.ndim; ++d) constant_[k] &= g_.strides[k][d] == 0;
      in_place |= k > 0 && data_[k] == data_[0];
    }
    for (int k = 0; k < N; ++k) is_plain_ &= constant_[k] || (g_.strides[k][0] == 1 && !half_[k]);
    far_ = g_.numel * size_[0] >= far_bytes;
    for (int k = 0; k < N; ++k) {
      int64_t bytes = size_[k];
      for (int d = 0; d < g_.ndim; ++d)
        if (g_.strides[k][d] != 0) bytes *= g_.sizes[d];
      // An operand that the output overwrites is not prefetched: its lines come for the stores.
      is_far_[k] = bytes >= far_bytes && data_[k] != data_[0];
      moved_bytes_ += bytes;
    }
    block_ = (far_ ? far_block_bytes : block_bytes) / widest;
    across_ = transposed_dimension();
    if (across_) block_ = block_bytes / widest;
    if (across_ == 0) merge_repeated_rows(widest);
    repeats_ = g_.ndim > 1 && g_.strides[0][0] == 1 && !period_;
    for (int k = 1; k < N; ++k) repeats_ &= g_.strides[k][0] == 0;
    has_short_rows_ = g_.ndim > 1 && g_.strides[0][0] == 1 && !half_[0] && !period_ && !across_ && !repeats_ &&
                      g_.sizes[0] < (is_plain_ ? row_elements : broadcast_row_elements);
    for (int k = 1; k < N; ++k)
      has_short_rows_ &= constant_[k] || (g_.strides[k][0] <= 1 && g_.strides[k][0] >= 0 && !half_[k]);
    may_stream_ = across_ == 0 && g_.ndim == 1 && g_.strides[0][0] == 1 && !in_place &&
                  g_.numel * size_[0] >= computed_streaming_threshold() &&
                  reinterpret_cast<uintptr_t>(data_[0]) % 64 == 0;
  }

  void run() {
    if (across_) return run_tiles();
    int64_t grain = std::max<int64_t>(2048, grain_for(blocks_.work));
    std::optional<LargeMove> move;
    const int64_t written = g_.numel * size_[0];
    streaming_ = may_stream_;
    // the inputs are at least a quarter of the output
    if (may_stream_ && 4 * moved_bytes_ >= 5 * written)
      streaming_ = move.emplace(written, moved_bytes_, is_plain_ && blocks_.work == 1).is_non_temporal();
    parallel_for(g_.numel, grain, [&](int64_t begin, int64_t end) { piece(begin, end); });
  }

 private:
  struct Buffers {
    alignas(64) std::byte operand[N][block_bytes];
    alignas(64) std::byte raw[block_bytes];
    // The element that fills an operand's buffer, and how often. The row's next block may reuse it.
    const std::byte* repeated[N] = {};
    int64_t repetitions[N] = {};
  };

  // Merges short rows into one long row if some input has the same values in each row (channels
  // last: one value per channel). That input's buffer holds its row repeatedly and serves all
  // blocks.
  void merge_repeated_rows(int64_t widest) {
    constexpr int64_t longest = 128;
    const int64_t period = g_.sizes[0];
    if (g_.ndim < 2 || period > longest || g_.strides[0][0] != 1) return;
    const auto joins = [&](int k, int64_t length) {
      return constant_[k] || g_.strides[k][1] == length * g_.strides[k][0];
    };
    int64_t length = period;
    while (g_.ndim > 1) {
      bool found = false;
      for (int k = 0; k < N; ++k) {
        const bool same = k > 0 && !constant_[k] && g_.strides[k][1] == 0 && (length == period || pattern_[k] != 0);
        if (!same && (pattern_[k] != 0 || !joins(k, length))) return;
        found |= same;
      }
      if (!found) return;
      for (int k = 0; k < N; ++k) {
        if (k > 0 && length == period && !constant_[k] && g_.strides[k][1] == 0) {
          pattern_[k] = g_.strides[k][0];
          g_.strides[k][0] = 0;
        }
        for (int d = 1; d + 1 < g_.ndim; ++d) g_.strides[k][d] = g_.strides[k][d + 1];
      }
      length *= g_.sizes[1];
      g_.sizes[0] = length;
      for (int d = 1; d + 1 < g_.ndim; ++d) g_.sizes[d] = g_.sizes[d + 1];
      --g_.ndim;
      period_ = period;
      block_ = std::min(block_, block_bytes / widest - period);
    }
  }

  // The buffer of an input that repeats a row of period_ elements, starting at the row's element
  // `phase`. The row begins at `from`.
  const std::byte* repeated_buffer(int k, const std::byte* from, int64_t phase, Buffers& buffers) const {
    const int64_t wide = wide_[k];
    std::byte* to = buffers.operand[k];
    if (buffers.repeated[k] != from) {
      gather(half_[k] ? buffers.raw : to, from, pattern_[k], size_[k], period_);
      if (half_[k]) widen(dtype_[k], buffers.raw, to, period_);
      for (int64_t filled = period_, all = block_ + period_; filled < all; filled *= 2)
        std::memcpy(to + filled * wide, to, std::min(filled, all - filled) * wide);
      buffers.repeated[k] = from;
    }
    return to + phase * wide;
  }

  void repeat_constants(const void** in, Buffers& buffers, int64_t n) const {
    for (int k = 1; k < N; ++k) {
      if (!constant_[k]) continue;
      in[k] = buffers.operand[k];
      float wide[2];
      const void* element = data_[k];
      if (half_[k]) widen(dtype_[k], element, wide, 1), element = wide;
      repeat_element(buffers.operand[k], element, wide_[k], n);
    }
  }

  // A dimension along which some input is contiguous that is strided along the innermost one, or 0.
  // Reading such an input in the output's order would touch one cache line per element.
  int transposed_dimension() const {
    if (g_.ndim < 2 || g_.strides[0][0] != 1 || g_.sizes[0] < 16) return 0;
    for (int k = 1; k < N; ++k)
      for (int d = 1; d < g_.ndim; ++d)
        if (g_.strides[k][0] > 1 && g_.strides[k][d] == 1 && g_.sizes[d] >= 16) return d;
    return 0;
  }

  // Processes tiles of dimension 0 times dimension across_. Each operand is gathered or transposed
  // into a buffer.
  void run_tiles() {
    const int64_t rows = std::min<int64_t>(32, block_ / 16), columns = block_ / rows;
    const Geometry<N> outer = without_dims(g_, 0, across_);
    const int64_t row_tiles = (g_.sizes[across_] + rows - 1) / rows;
    const int64_t grain = std::max<int64_t>(1, grain_for(blocks_.work) / (rows * g_.sizes[0]));
    parallel_for(outer.numel * row_tiles, grain, [&](int64_t begin, int64_t end) {
      Buffers buffers;
      const void* in[N];
      repeat_constants(in, buffers, block_);
      for (int64_t item = begin; item < end; ++item) {
        Position<N> at(outer, item / row_tiles);
        int64_t j = item % row_tiles * rows, tile_rows = std::min(rows, g_.sizes[across_] - j);
        for (int64_t i = 0; i < g_.sizes[0]; i += columns) {
          prefetch_tile(at, i + columns, std::min(columns, g_.sizes[0] - i - columns), j, tile_rows);
          tile(at, i, std::min(columns, g_.sizes[0] - i), j, tile_rows, in, buffers);
        }
      }
    });
  }

  // Rows of a transposed input lie too far apart for the hardware prefetcher. Prefetches to L2:
  // rows a power of two apart would evict each other from L1.
  void prefetch_tile(const Position<N>& at, int64_t i, int64_t columns, int64_t j, int64_t rows) const {
    if (columns <= 0 || !far_) return;
    for (int k = 1; k < N; ++k) {
      const int64_t along = g_.strides[k][0];
      if (constant_[k] || g_.strides[k][across_] != 1 || along == 1) continue;
      for (int64_t c = 0; c < columns; ++c) {
        const std::byte* row = data_[k] + (at.offsets[k] + (i + c) * along + j) * size_[k];
        for (int64_t offset = 0; offset < rows * size_[k]; offset += 64) _mm_prefetch(row + offset, _MM_HINT_T1);
      }
    }
  }

  void tile(const Position<N>& at, int64_t i, int64_t columns, int64_t j, int64_t rows, const void** in,
            Buffers& buffers) const {
    for (int k = 1; k < N; ++k) {
      if (constant_[k]) continue;
      int64_t along = g_.strides[k][0], across = g_.strides[k][across_];
      const std::byte* from = data_[k] + (at.offsets[k] + i * along + j * across) * size_[k];
      std::byte* to = half_[k] ? buffers.raw : buffers.operand[k];
      dispatch_size(size_[k], [&]<typename U>() {
        U* elements = reinterpret_cast<U*>(to);
        const U* source = reinterpret_cast<const U*>(from);
        if (across == 1 && along != 1) return transpose_bits(elements, columns, source, along, columns, rows);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c) elements[r * columns + c] = source[r * across + c * along];
      });
      if (half_[k]) widen(dtype_[k], to, buffers.operand[k], rows * columns);
      in[k] = buffers.operand[k];
    }
    blocks_.loop(buffers.operand[0], in + 1, rows * columns, blocks_.context);
    const std::byte* from = buffers.operand[0];
    if (half_[0]) {
      narrow(dtype_[0], from, buffers.raw, rows * columns);
      from = buffers.raw;
    }
    std::byte* to = data_[0] + (at.offsets[0] + i + j * g_.strides[0][across_]) * size_[0];
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(to + r * g_.strides[0][across_] * size_[0], from + r * columns * size_[0], columns * size_[0]);
  }

  void piece(int64_t begin, int64_t end) const {
    Buffers buffers;
    const void* in[N];
    repeat_constants(in, buffers, std::min(block_, end - begin));
    Position<N> at(g_, begin);
    for (int64_t done = begin; done < end;) {
      int64_t n = std::min(block_, end - done), left = at.left(g_);
      if (has_short_rows_ && at.index[0] == 0 && n >= left) {
        const int64_t rows = std::min(n / left, g_.sizes[1] - at.index[1]);
        n = rows * left;
        short_rows(at, rows, in, buffers);
        at.index[1] += rows - 1;
        for (int k = 0; k < N; ++k) at.offsets[k] += (rows - 1) * g_.strides[k][1];
        if (done + n < end) at.advance(g_, left);
      } else if (period_ || has_short_rows_ || left >= std::min(n, row_elements)) {
        n = std::min(n, left);
        row(at, n, in, buffers);
        if (done + n < end) at.advance(g_, n);
      } else {
        several_rows(at, n, in, buffers, done + n < end);
      }
      done += n;
    }
    if (streaming_) _mm_sfence();
  }

  // All inputs are broadcast along the row: one result is computed and repeated.
  void broadcast_row(const Position<N>& at, int64_t n) const {
    alignas(16) std::byte wide[N][16];
    const void* in[N];
    for (int k = 1; k < N; ++k) {
      in[k] = data_[k] + at.offsets[k] * size_[k];
      if (half_[k]) widen(dtype_[k], in[k], wide[k], 1), in[k] = wide[k];
    }
    alignas(16) std::byte result[16];
    blocks_.loop(wide[0], in + 1, 1, blocks_.context);
    if (half_[0]) narrow(dtype_[0], wide[0], result, 1);
    repeat_element(data_[0] + at.offsets[0] * size_[0], half_[0] ? result : wide[0], size_[0], n);
  }

  void row(const Position<N>& at, int64_t n, const void** in, Buffers& buffers) const {
    if (repeats_) return broadcast_row(at, n);
    for (int k = 1; k < N; ++k) {
      if (constant_[k]) continue;
      const std::byte* from = data_[k] + at.offsets[k] * size_[k];
      in[k] = from;
      if (is_far_[k] && g_.strides[k][0] == 1) prefetch(from + n * size_[k], n * size_[k]);
      if (pattern_[k]) {
        in[k] = repeated_buffer(k, from, at.index[0] % period_, buffers);
        continue;
      }
      if (g_.strides[k][0] == 0) {
        in[k] = buffers.operand[k];
        if (buffers.repeated[k] == from && buffers.repetitions[k] >= n) continue;
        buffers.repeated[k] = from;
        buffers.repetitions[k] = n;
      }
      if (g_.strides[k][0] != 1) {
        std::byte* to = half_[k] ? buffers.raw : buffers.operand[k];
        gather(to, from, g_.strides[k][0], size_[k], n);
        in[k] = from = to;
      }
      if (half_[k]) {
        widen(dtype_[k], from, buffers.operand[k], n);
        in[k] = buffers.operand[k];
      }
    }
    std::byte* to = data_[0] + at.offsets[0] * size_[0];
    int64_t stride = g_.strides[0][0];
    bool direct = stride == 1 && !half_[0] && !streaming_;
    blocks_.loop(direct ? to : buffers.operand[0], in + 1, n, blocks_.context);
    if (direct) return;
    const std::byte* from = buffers.operand[0];
    if (half_[0]) {
      std::byte* narrowed = stride == 1 && !streaming_ ? to : buffers.raw;
      narrow(dtype_[0], from, narrowed, n);
      if (narrowed == to) return;
      from = narrowed;
    }
    if (streaming_) {
      int64_t bytes = n * size_[0], lines = bytes & ~int64_t{63};
      stream_lines(to, from, lines);
      std::memcpy(to + lines, from + lines, bytes - lines);
    } else {
      scatter(to, stride, from, size_[0], n);
    }
  }

  // Whole rows that are contiguous or broadcast in every operand, as many as fill a block. Rows
  // that lie apart are packed first.
  void short_rows(const Position<N>& at, int64_t rows, const void** in, Buffers& buffers) const {
    const int64_t length = g_.sizes[0];
    for (int k = 1; k < N; ++k) {
      if (constant_[k]) continue;
      const int64_t bytes = length * size_[k];
      const std::byte* from = data_[k] + at.offsets[k] * size_[k];
      in[k] = from;
      if (g_.strides[k][1] == length && g_.strides[k][0] == 1) continue;
      buffers.repeated[k] = nullptr;
      if (g_.strides[k][0] == 0)
        dispatch_size(size_[k], [&]<typename U>() {
          repeat_in_rows(reinterpret_cast<U*>(buffers.operand[k]), reinterpret_cast<const U*>(from), g_.strides[k][1],
                         rows, length);
        });
      else
        move_rows(buffers.operand[k], bytes, from, g_.strides[k][1] * size_[k], rows, bytes);
      in[k] = buffers.operand[k];
    }
    std::byte* to = data_[0] + at.offsets[0] * size_[0];
    const bool direct = g_.strides[0][1] == length;
    blocks_.loop(direct ? to : buffers.operand[0], in + 1, rows * length, blocks_.context);
    const int64_t bytes = length * size_[0];
    if (!direct) move_rows(to, g_.strides[0][1] * size_[0], buffers.operand[0], bytes, rows, bytes);
  }

  void several_rows(Position<N>& at, int64_t n, const void** in, Buffers& buffers, bool more) const {
    Position<N> start = at;
    bool plain = true;  // no input is a half precision: one pass gathers all inputs
    for (int k = 1; k < N; ++k) {
      plain &= constant_[k] || !half_[k];
      if (!constant_[k]) in[k] = buffers.operand[k];
      buffers.repeated[k] = nullptr;
    }
    if (plain) {
      walk(at, n, [&](int64_t done, int64_t m) {
        for (int k = 1; k < N; ++k)
          if (!constant_[k])
            gather(buffers.operand[k] + done * size_[k], data_[k] + at.offsets[k] * size_[k], g_.strides[k][0],
                   size_[k], m);
      });
    } else {
      for (int k = 1; k < N; ++k) {
        if (constant_[k]) continue;
        at = start;
        std::byte* to = half_[k] ? buffers.raw : buffers.operand[k];
        walk(at, n, [&](int64_t done, int64_t m) {
          gather(to + done * size_[k], data_[k] + at.offsets[k] * size_[k], g_.strides[k][0], size_[k], m);
        });
        if (half_[k]) widen(dtype_[k], to, buffers.operand[k], n);
      }
    }
    blocks_.loop(buffers.operand[0], in + 1, n, blocks_.context);
    const std::byte* from = buffers.operand[0];
    if (half_[0]) {
      narrow(dtype_[0], from, buffers.raw, n);
      from = buffers.raw;
    }
    at = start;
    walk(at, n, [&](int64_t done, int64_t m) {
      scatter(data_[0] + at.offsets[0] * size_[0], g_.strides[0][0], from + done * size_[0], size_[0], m);
    });
    if (more) carry(at);
  }

  // Calls f(elements done, elements in this run) with `at` at the start of each run. Afterwards
  // `at` is behind the last element, without carry into the outer dimensions.
  template <typename F>
  void walk(Position<N>& at, int64_t n, F&& f) const {
    for (int64_t done = 0; done < n;) {
      int64_t m = std::min(n - done, at.left(g_));
      f(done, m);
      done += m;
      at.index[0] += m;
      for (int k = 0; k < N; ++k) at.offsets[k] += m * g_.strides[k][0];
      if (done < n) carry(at);
    }
  }
  void carry(Position<N>& at) const { at.advance(g_, 0); }

  const Blocks& blocks_;
  Geometry<N> g_;
  std::byte* data_[N];
  int32_t dtype_[N];
  int64_t size_[N], wide_[N];  // bytes of an element in memory, and of one that the loop gets
  bool half_[N], constant_[N], is_far_[N];
  int64_t block_;
  // length of a repeated row; element stride of the row in each input that repeats it
  int64_t period_ = 0, pattern_[N] = {};
  int across_;
  int64_t moved_bytes_ = 0;
  bool far_, is_plain_ = true, has_short_rows_, repeats_, may_stream_, streaming_ = false;
};

}  // namespace

void repeat_element(void* out, const void* value, int64_t itemsize, int64_t n) {
  if (itemsize == 1) return void(std::memset(out, *static_cast<const unsigned char*>(value), n));
  dispatch_size(itemsize, [&]<typename U>() {
    const U element = *static_cast<const U*>(value);
    U* elements = static_cast<U*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) elements[i] = element;
  });
}

void use_widening_conversions(const WideningConversions& chosen) {
  conversions = chosen;
}

void widen(int32_t dtype, const void* in, void* out, int64_t n) {
  if (is_float8_dtype(dtype))
    return conversions.float8_to_float(dtype, static_cast<const uint8_t*>(in), static_cast<float*>(out), n);
  const auto convert = dtype == CB_BFLOAT16 ? conversions.bfloat16_to_float : conversions.half_to_float;
  convert(static_cast<const uint16_t*>(in), static_cast<float*>(out), dtype == CB_COMPLEX32 ? 2 * n : n);
}

void narrow(int32_t dtype, const void* in, void* out, int64_t n) {
  if (is_float8_dtype(dtype))
    return conversions.float8_from_float(dtype, static_cast<const float*>(in), static_cast<uint8_t*>(out), n);
  const auto convert = dtype == CB_BFLOAT16 ? conversions.bfloat16_from_float : conversions.half_from_float;
  convert(static_cast<const float*>(in), static_cast<uint16_t*>(out), dtype == CB_COMPLEX32 ? 2 * n : n);
}

LoopCapture*& loop_capture() {
  static thread_local LoopCapture* capture = nullptr;
  return capture;
}

void run_blocks(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count) {
  if (out.numel == 0) return;
  if (LoopCapture* const capture = loop_capture()) [[unlikely]]
    return capture->captured(blocks, out, in, count);
  switch (count) {
    case 1:
      return Driver<2>(blocks, {&out, in[0]}).run();
    case 2:
      return Driver<3>(blocks, {&out, in[0], in[1]}).run();
    default:
      return Driver<4>(blocks, {&out, in[0], in[1], in[2]}).run();
  }
}

}  // namespace candelabra::cpu
