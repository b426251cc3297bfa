// cat, stack, flip, tril, triu.
#include <cstring>

#include "move.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

char* address(const cb_tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data) + element * itemsize(tensor.dtype);
}

// A part of the result that is the same in each of its rows: where it begins there, how long it is, and where it comes from.
struct Piece {
  const std::byte* from;
  int64_t at, bytes;
};

// Rows made of pieces that lie one after another in memory: all pieces of a block of rows are written before the next block, so
// that every line of the result goes out once.
void join_rows(const cb_tensor& out, int64_t rows, std::span<const Piece> pieces) {
  constexpr int64_t block_bytes = 16384;
  const int64_t bytes = out.numel * itemsize(out.dtype), row = bytes / rows;
  const RowStores stores = row_stores(bytes);
  const int64_t together = std::max<int64_t>(stores == RowStores::InTurn ? 4 : 1, block_bytes / row);
  auto* to = static_cast<std::byte*>(out.data);
  parallel_for(rows, std::max<int64_t>(1, light_grain * 4 / row), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += together) {
      const int64_t n = std::min(together, end - first);
      for (const Piece& piece : pieces)
        move_rows(to + first * row + piece.at, row, piece.from + first * piece.bytes, piece.bytes, n, piece.bytes, stores);
    }
    if (stores == RowStores::PastCaches) _mm_sfence();
  });
}

// Rows are counted by the dimensions before `dim`; false where a tensor has gaps, or where one row is all there is.
bool join_dense(const cb_tensor& out, int64_t dim, std::span<const cb_tensor* const> parts) {
  constexpr size_t most = 64;
  int64_t rows = 1, at = 0;
  for (int64_t d = 0; d < dim; ++d) rows *= out.sizes[d];
  if (rows < 2 || out.numel == 0 || parts.size() > most || !is_contiguous(out)) return false;
  Piece pieces[most];
  size_t count = 0;
  for (const cb_tensor* part : parts) {
    if (!is_contiguous(*part)) return false;
    if (part->numel == 0) continue;
    const int64_t bytes = part->numel / rows * itemsize(out.dtype);
    pieces[count++] = {static_cast<const std::byte*>(part->data), at, bytes};
    at += bytes;
  }
  join_rows(out, rows, std::span(pieces, count));
  return true;
}

void cat(Call& call) {
  cb_tensor& out = call.output();
  int64_t dim = call.integer(1);
  if (join_dense(out, dim, call.tensors(0))) return;
  int64_t at = 0;
  for (const cb_tensor* part : call.tensors(0)) {
    cb_tensor place = *part;
    place.data = address(out, at * out.strides[dim]);
    place.strides = out.strides;
    move_elements(place, *part);
    at += part->sizes[dim];
  }
}

void stack(Call& call) {
  cb_tensor& out = call.output();
  int64_t dim = call.integer(1), at = 0;
  const auto parts = call.tensors(0);
  constexpr size_t interleaved = 4;  // single elements of so few tensors are interleaved faster
  if ((dim + 1 < out.ndim || parts.size() > interleaved) && join_dense(out, dim, parts)) return;
  int64_t strides[max_dims];
  for (int d = 0, kept = 0; d < out.ndim; ++d)
    if (d != dim) strides[kept++] = out.strides[d];
  for (const cb_tensor* part : parts) {
    cb_tensor place = *part;
    place.data = address(out, at++ * out.strides[dim]);
    place.strides = strides;
    move_elements(place, *part);
  }
}

// The input seen from the other end: negative strides.
void flip(Call& call) {
  const cb_tensor& in = call.tensor(0);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  int64_t strides[max_dims];
  std::copy_n(in.strides, in.ndim, strides);
  cb_tensor seen = in;
  int64_t last = 0;
  for (int64_t d : call.ints(1)) {
    last += (in.sizes[d] - 1) * in.strides[d];
    strides[d] = -in.strides[d];
  }
  seen.data = address(in, last);
  seen.strides = strides;
  move_elements(out, seen);
}

template <typename U, bool Lower>
void triangle_of(const cb_tensor& in, cb_tensor& out, int64_t diagonal) {
  int last = out.ndim - 1;
  int64_t rows = out.sizes[last - 1], columns = out.sizes[last];
  int64_t in_stride = in.strides[last], out_stride = out.strides[last];
  cb_tensor in_rows = in, out_rows = out;  // one element a row
  in_rows.ndim = out_rows.ndim = last;
  in_rows.numel = out_rows.numel = out.numel / columns;
  auto g = geometry<2>({&out_rows, &in_rows}, Order::RowMajor);
  bool same = in.data == out.data;
  // Of so few columns, looking at all of them takes less time than two calls for the parts.
  const bool narrow = columns * static_cast<int64_t>(sizeof(U)) <= 128 && in_stride == 1 && out_stride == 1;
  parallel_for(g.numel, grain_for(columns), [&](int64_t begin, int64_t end) {
    int64_t row = begin % rows;  // of its matrix
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i, row = row + 1 == rows ? 0 : row + 1) {
        const U* from = data<U>(in) + at[1] + i * g.strides[1][0];
        U* to = data<U>(out) + at[0] + i * g.strides[0][0];
        // Kept are columns [0, edge) of tril and [edge, columns) of triu.
        int64_t edge = std::clamp<int64_t>(row + diagonal + (Lower ? 1 : 0), 0, columns);
        if (narrow) {
          for (int64_t j = 0; j < columns; ++j) to[j] = (j < edge) == Lower ? from[j] : U{};
          continue;
        }
        int64_t kept = Lower ? 0 : edge, kept_end = Lower ? edge : columns;
        int64_t cleared = Lower ? edge : 0, cleared_end = Lower ? columns : edge;
        if (!same) move_run(to + kept * out_stride, out_stride, from + kept * in_stride, in_stride, kept_end - kept);
        if (out_stride == 1)
          std::fill(to + cleared, to + cleared_end, U{});
        else
          for (int64_t j = cleared; j < cleared_end; ++j) to[j * out_stride] = U{};
      }
    });
  });
}

template <bool Lower>
void triangle(Call& call) {
  const cb_tensor& in = call.tensor(0);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  // Far beyond any size, so that adding a row number cannot overflow.
  constexpr int64_t far = int64_t{1} << 60;
  int64_t diagonal = std::clamp(call.integer(1), -far, far);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() { triangle_of<U, Lower>(in, out, diagonal); });
}

// A tensor with some of its dimensions split in several, all of which may have steps of their own.
struct Split {
  int64_t sizes[max_dims], strides[max_dims];
  cb_tensor tensor;

  explicit Split(const cb_tensor& original) : tensor(original) {
    tensor.ndim = 0;
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  Split(const Split&) = delete;
  void add(int64_t size, int64_t stride) {
    if (tensor.ndim == max_dims)
      throw failure(CB_RUNTIME_ERROR, "a tensor of %d dimensions cannot be split further", static_cast<int>(max_dims));
    sizes[tensor.ndim] = size;
    strides[tensor.ndim++] = stride;
  }
};

// Blocks of r by r pixels of `wide` beside the channels of `deep`.
void match_pixels(const cb_tensor& deep, const cb_tensor& wide, int64_t r, Split& deep_parts, Split& wide_parts) {
  const int channels = deep.ndim - 3, rows = channels + 1, columns = rows + 1;
  for (int d = 0; d < channels; ++d) deep_parts.add(deep.sizes[d], deep.strides[d]), wide_parts.add(deep.sizes[d], wide.strides[d]);
  const auto add = [&](int64_t size, int64_t in_deep, int64_t in_wide) {
    deep_parts.add(size, in_deep);
    wide_parts.add(size, in_wide);
  };
  add(wide.sizes[channels], deep.strides[channels] * r * r, wide.strides[channels]);
  add(r, deep.strides[channels] * r, wide.strides[rows]);
  add(r, deep.strides[channels], wide.strides[columns]);
  add(deep.sizes[rows], deep.strides[rows], wide.strides[rows] * r);
  add(deep.sizes[columns], deep.strides[columns], wide.strides[columns] * r);
}

// Both with neighbouring channels: rows of pixels side by side in the wide tensor, whose elements lie r * r apart in the deep one.
bool has_neighbouring_channels(const cb_tensor& tensor) {
  return tensor.ndim == 4 && tensor.strides[1] == 1 && tensor.sizes[1] > 1;
}

template <bool Spread, typename U>
void move_pixels(const cb_tensor& deep, const cb_tensor& wide, int64_t r) {
  const int64_t channels = wide.sizes[1], height = deep.sizes[2], width = deep.sizes[3];
  parallel_for(deep.sizes[0] * height * r, grain_for(2 * width * r * channels), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t sample = line / (height * r), row = line % (height * r);
      U* deep_row = mutable_data<U>(deep) + sample * deep.strides[0] + row / r * deep.strides[2] + row % r * r;
      U* wide_row = mutable_data<U>(wide) + sample * wide.strides[0] + row * wide.strides[2];
      for (int64_t x = 0; x < width; ++x)
        for (int64_t j = 0; j < r; ++j) {
          U *in_deep = deep_row + x * deep.strides[3] + j, *in_wide = wide_row + (x * r + j) * wide.strides[3];
          for (int64_t c = 0; c < channels; ++c) {
            if constexpr (Spread)
              in_wide[c] = in_deep[c * r * r];
            else
              in_deep[c * r * r] = in_wide[c];
          }
        }
    }
  });
}

void pixel_shuffle(Call& call) {
  if (has_neighbouring_channels(call.tensor(0)) && has_neighbouring_channels(call.output()))
    return dispatch_size(itemsize(call.output().dtype),
                         [&]<typename U>() { move_pixels<true, U>(call.tensor(0), call.output(), call.integer(1)); });
  Split from(call.tensor(0)), to(call.output());
  match_pixels(call.tensor(0), call.output(), call.integer(1), from, to);
  move_elements(to.tensor, from.tensor);
}

void pixel_unshuffle(Call& call) {
  if (has_neighbouring_channels(call.tensor(0)) && has_neighbouring_channels(call.output()))
    return dispatch_size(itemsize(call.output().dtype),
                         [&]<typename U>() { move_pixels<false, U>(call.output(), call.tensor(0), call.integer(1)); });
  Split from(call.tensor(0)), to(call.output());
  match_pixels(call.output(), call.tensor(0), call.integer(1), to, from);
  move_elements(to.tensor, from.tensor);
}

void channel_shuffle(Call& call) {
  const cb_tensor &in = call.tensor(0), &out = call.output();
  const int64_t groups = call.integer(1), each = in.sizes[1] / groups;
  Split from(in), to(out);
  for (int d = 0; d < in.ndim; ++d) {
    if (d == 1) {
      from.add(groups, in.strides[1] * each);
      to.add(groups, out.strides[1]);
      from.add(each, in.strides[1]);
      to.add(each, out.strides[1] * groups);
    } else {
      from.add(in.sizes[d], in.strides[d]);
      to.add(in.sizes[d], out.strides[d]);
    }
  }
  move_elements(to.tensor, from.tensor);
}

}  // namespace

void register_joining(KernelTable& table) {
  table.add<cat>("cat");
  table.add<stack>("stack");
  table.add<flip>("flip");
  table.add<triangle<true>>("tril");
  table.add<triangle<false>>("triu");
  table.add<pixel_shuffle>("pixel_shuffle");
  table.add<pixel_unshuffle>("pixel_unshuffle");
  table.add<channel_shuffle>("channel_shuffle");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
