// cat, stack, flip, tril, triu, pixel_shuffle, pixel_unshuffle, channel_shuffle.
#include <cstring>

#include "candelabra/arguments/joining.hpp"
#include "kernels/movement/move.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

char* address(const cb_tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data) + element * itemsize(tensor.dtype);
}

// One input of cat or stack as bytes: bytes [at, at + bytes) of every row of the result.
struct Piece {
  const std::byte* from;
  int64_t at, bytes;
};

// Writes rows made of contiguous pieces. All pieces of a block of rows are written before the next
// block, so that every cache line of the result is written once.
void join_rows(const cb_tensor& out, int64_t rows, std::span<const Piece> pieces) {
  constexpr int64_t block_bytes = 16384;
  const int64_t bytes = out.numel * itemsize(out.dtype), row = bytes / rows;
  const MoveStores stores = move_stores(bytes);
  const int64_t block = std::max<int64_t>(stores == MoveStores::Interleaved ? 4 : 1, block_bytes / row);
  auto* to = static_cast<std::byte*>(out.data);
  parallel_for(rows, std::max<int64_t>(1, light_grain * 4 / row), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += block) {
      const int64_t n = std::min(block, end - first);
      for (const Piece& piece : pieces)
        move_rows(to + first * row + piece.at, row, piece.from + first * piece.bytes, piece.bytes, n, piece.bytes,
                  stores);
    }
    fence_after(stores);
  });
}

// Joins contiguous tensors; a row has the dimensions from `dim` on. False where a tensor is not
// contiguous or there is only one row.
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
  const arguments::Cat args(call);
  cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  if (join_dense(out, dim, args.tensors)) return;
  int64_t at = 0;
  for (const cb_tensor* part : args.tensors) {
    cb_tensor target = *part;
    target.data = address(out, at * out.strides[dim]);
    target.strides = out.strides;
    move_elements(target, *part);
    at += part->sizes[dim];
  }
}

void stack(Call& call) {
  const arguments::Stack args(call);
  cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  const auto parts = args.tensors;
  constexpr size_t interleaved = 4;  // interleaving single elements of so few tensors is faster
  if ((dim + 1 < out.ndim || parts.size() > interleaved) && join_dense(out, dim, parts)) return;
  int64_t strides[max_dims];
  for (int d = 0, kept = 0; d < out.ndim; ++d)
    if (d != dim) strides[kept++] = out.strides[d];
  int64_t at = 0;
  for (const cb_tensor* part : parts) {
    cb_tensor target = *part;
    target.data = address(out, at++ * out.strides[dim]);
    target.strides = strides;
    move_elements(target, *part);
  }
}

// Copies a view of the input with negative strides.
void flip(Call& call) {
  const arguments::Flip args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  int64_t strides[max_dims];
  std::copy_n(in.strides, in.ndim, strides);
  cb_tensor view = in;
  int64_t last = 0;
  for (int64_t d : args.dims) {
    last += (in.sizes[d] - 1) * in.strides[d];
    strides[d] = -in.strides[d];
  }
  view.data = address(in, last);
  view.strides = strides;
  move_elements(out, view);
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
  // For few columns one loop with a select is faster than a copy and a fill.
  const bool narrow = columns * static_cast<int64_t>(sizeof(U)) <= 128 && in_stride == 1 && out_stride == 1;
  parallel_for(g.numel, grain_for(columns), [&](int64_t begin, int64_t end) {
    int64_t row = begin % rows;  // of its matrix
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i, row = row + 1 == rows ? 0 : row + 1) {
        const U* from = data<U>(in) + at[1] + i * g.strides[1][0];
        U* to = data<U>(out) + at[0] + i * g.strides[0][0];
        // tril keeps columns [0, edge), triu [edge, columns).
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

// tril, triu: the same schema
template <bool Lower>
void triangle(Call& call) {
  const arguments::Tril args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  // Larger than any size, and small enough that adding a row index cannot overflow.
  constexpr int64_t limit = int64_t{1} << 60;
  const int64_t diagonal = std::clamp(args.diagonal, -limit, limit);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() { triangle_of<U, Lower>(in, out, diagonal); });
}

// A view of a tensor with some of its dimensions split into several.
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

// Views of `deep` (N, C * r * r, H, W) and `wide` (N, C, H * r, W * r) with equal sizes (N, C, r,
// r, H, W).
void match_pixels(const cb_tensor& deep, const cb_tensor& wide, int64_t r, Split& deep_parts, Split& wide_parts) {
  const int channels = deep.ndim - 3, rows = channels + 1, columns = rows + 1;
  for (int d = 0; d < channels; ++d)
    deep_parts.add(deep.sizes[d], deep.strides[d]), wide_parts.add(deep.sizes[d], wide.strides[d]);
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

bool is_channels_last(const cb_tensor& tensor) {
  return tensor.ndim == 4 && tensor.strides[1] == 1 && tensor.sizes[1] > 1;
}

// pixel_shuffle of channels-last tensors (Shuffle), or its inverse. A pixel of `wide` has adjacent
// channels, which are r * r elements apart in `deep`.
template <bool Shuffle, typename U>
void shuffle_channels_last(const cb_tensor& deep, const cb_tensor& wide, int64_t r) {
  const int64_t channels = wide.sizes[1], height = deep.sizes[2], width = deep.sizes[3];
  parallel_for(deep.sizes[0] * height * r, grain_for(2 * width * r * channels), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t sample = task / (height * r), row = task % (height * r);
      U* deep_row = mutable_data<U>(deep) + sample * deep.strides[0] + row / r * deep.strides[2] + row % r * r;
      U* wide_row = mutable_data<U>(wide) + sample * wide.strides[0] + row * wide.strides[2];
      for (int64_t x = 0; x < width; ++x)
        for (int64_t j = 0; j < r; ++j) {
          U *in_deep = deep_row + x * deep.strides[3] + j, *in_wide = wide_row + (x * r + j) * wide.strides[3];
          for (int64_t c = 0; c < channels; ++c) {
            if constexpr (Shuffle)
              in_wide[c] = in_deep[c * r * r];
            else
              in_deep[c * r * r] = in_wide[c];
          }
        }
    }
  });
}

void pixel_shuffle(Call& call) {
  const arguments::PixelShuffle args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  const int64_t r = args.upscale_factor;
  if (is_channels_last(in) && is_channels_last(out))
    return dispatch_size(itemsize(out.dtype), [&]<typename U>() { shuffle_channels_last<true, U>(in, out, r); });
  Split from(in), to(out);
  match_pixels(in, out, r, from, to);
  move_elements(to.tensor, from.tensor);
}

void pixel_unshuffle(Call& call) {
  const arguments::PixelUnshuffle args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  const int64_t r = args.downscale_factor;
  if (is_channels_last(in) && is_channels_last(out))
    return dispatch_size(itemsize(out.dtype), [&]<typename U>() { shuffle_channels_last<false, U>(out, in, r); });
  Split from(in), to(out);
  match_pixels(out, in, r, to, from);
  move_elements(to.tensor, from.tensor);
}

void channel_shuffle(Call& call) {
  const arguments::ChannelShuffle args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  const int64_t groups = args.groups, each = in.sizes[1] / groups;
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
