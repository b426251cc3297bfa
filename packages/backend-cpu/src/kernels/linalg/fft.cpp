// Fourier transforms along dimensions, by a library (vendor/fourier.hpp).
//
// It reads the slices along a dimension in place, several neighbours per call, and writes to the
// result. Slices that it cannot take (negative or zero strides, coefficients that must be
// corrected first) are gathered into a buffer. Each slice is transformed by one thread, so results
// do not depend on the number of threads. A single slice uses the library's own threads, unless
// deterministic results are asked for. Small planes and volumes (the last two or three dimensions,
// all of them transformed) are handed to it whole, which transforms them within the first cache
// level.
#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "candelabra/arguments/fft.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "threads/deterministic.hpp"
#include "threads/parallel.hpp"
#include "vendor/fourier.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using fourier::Kind;
using fourier::Layout;
using fourier::most_dims;
using fourier::Plan;

// Slices with one `stride` between elements.
Layout slice_layout(int64_t stride, int64_t distance) {
  return {{stride, 0, 0}, distance};
}

// The slices of two tensors along one dimension. They are numbered by the other dimensions, sorted
// by output stride, the smallest innermost. The innermost of these has `row` slices, at distances
// `in_row` and `out_row`.
class Slices {
 public:
  Slices(const cb_tensor& in, const cb_tensor& out, int dim)
      : in_stride(in.strides[dim]), out_stride(out.strides[dim]) {
    std::vector<int> dims;
    for (int d = 0; d < out.ndim; ++d)
      if (d != dim && out.sizes[d] != 1) dims.push_back(d);
    std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return out.strides[a] > out.strides[b]; });
    for (int d : dims) {
      count *= out.sizes[d];
      // Merges dimensions that are contiguous with each other in both tensors.
      if (!sizes_.empty() && in_strides_.back() == in.strides[d] * out.sizes[d] &&
          out_strides_.back() == out.strides[d] * out.sizes[d]) {
        sizes_.back() *= out.sizes[d];
        in_strides_.back() = in.strides[d];
        out_strides_.back() = out.strides[d];
      } else {
        sizes_.push_back(out.sizes[d]);
        in_strides_.push_back(in.strides[d]);
        out_strides_.push_back(out.strides[d]);
      }
    }
    if (!sizes_.empty()) row = sizes_.back(), in_row = in_strides_.back(), out_row = out_strides_.back();
  }

  // Offsets of a slice in both tensors, in elements.
  std::pair<int64_t, int64_t> offsets(int64_t slice) const {
    int64_t in = 0, out = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      in += slice % sizes_[d] * in_strides_[d];
      out += slice % sizes_[d] * out_strides_[d];
      slice /= sizes_[d];
    }
    return {in, out};
  }

  int64_t in_stride, out_stride, count = 1, row = 1, in_row = 0, out_row = 0;

 private:
  std::vector<int64_t> sizes_, in_strides_, out_strides_;
};

// The number of neighbouring slices per call of the library: enough to hide the cost of the call
// and to use whole cache lines.
int64_t slices_per_call(int64_t n) {
  return std::max<int64_t>(16, 32768 / n);
}

// out[i + j * out_step] = in[i * in_step + j] for i < rows and j < columns, in tiles that touch
// whole cache lines on both sides.
template <typename T>
void transpose(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t rows, int64_t columns) {
  constexpr int64_t side = 16;
  for (int64_t i = 0; i < rows; i += side)
    for (int64_t j = 0; j < columns; j += side) {
      transpose_tile(out + i + j * out_step, out_step, in + i * in_step + j, in_step, std::min(side, rows - i),
                     std::min(side, columns - j));
    }
}

// A transform of all slices along one dimension, of `n` points each.
struct Transform {
  int dim;
  int64_t n;
  bool forward;
  double scale;
  bool is_chunk;  // the slices are not divided further: other threads have other chunks
};

template <typename In, typename Out>
constexpr Kind kind_of = std::is_same_v<In, Out> ? Kind::Complex
                         : is_complex_v<Out>     ? Kind::RealToComplex
                                                 : Kind::ComplexToReal;

// Neighbouring slices of one row, one call of the library.
template <typename In, typename Out>
struct SliceBlock {
  const In* in;
  Out* out;
  int64_t count;
};

// How the slices along one dimension are transformed.
template <typename In, typename Out>
class SlicePlan {
 public:
  SlicePlan(const cb_tensor& input, const cb_tensor& output, const Transform& transform)
      : transform_(transform),
        slices_(input, output, transform.dim),
        source_(static_cast<const In*>(input.data)),
        target_(static_cast<Out*>(output.data)) {
    const int64_t n = transform.n;
    if (is_empty()) return;
    in_place_ = input.data == output.data && slices_.in_stride == slices_.out_stride;
    gathered_ = kind == Kind::ComplexToReal || (in_length() > 1 && slices_.in_stride <= 0) ||
                (slices_.row > 1 && slices_.in_row <= 0);
    threaded_ = slices_.count == 1 && !is_deterministic();
    // Strided slices whose neighbours are adjacent in memory are transposed, so that the library
    // sees them contiguous. Short complex ones are copied to the result first, since MKL is faster
    // in place.
    const bool adjacent =
        !threaded_ && !gathered_ && n > 1 && slices_.in_stride > 1 && slices_.in_row == 1 && slices_.out_row == 1;
    transposed_ = adjacent && n >= 32;
    copied_ = adjacent && kind == Kind::Complex && !in_place_ && !transposed_;
    // At least as many blocks as there may be threads.
    most_ = transposed_          ? 16
            : transform.is_chunk ? slices_per_call(n)
                                 : std::min(slices_per_call(n), std::max<int64_t>(16, slices_.count / 16));
    blocks_of_row_ = (slices_.row + most_ - 1) / most_;
  }

  bool is_empty() const { return slices_.count == 0 || transform_.n == 0; }

  void run() const {
    const LibraryThreads threads(threaded_ ? INT32_MAX : 1);
    if (threaded_) return transform_blocks(0, 1);
    const int64_t blocks = slices_.count / slices_.row * blocks_of_row_;
    parallel_for(blocks, grain_for(most_ * transform_.n * 8), [&](int64_t begin, int64_t end) {
      const LibraryThreads one(1);
      transform_blocks(begin, end);
    });
  }

 private:
  using Block = SliceBlock<In, Out>;
  static constexpr Kind kind = kind_of<In, Out>;

  // The blocks of a row differ in size by at most one slice.
  int64_t start_of(int64_t block) const { return slices_.row * block / blocks_of_row_; }

  Block block_at(int64_t block) const {
    const int64_t at = start_of(block % blocks_of_row_);
    const auto [from, to] = slices_.offsets(block / blocks_of_row_ * slices_.row + at);
    return {source_ + from, target_ + to, start_of(block % blocks_of_row_ + 1) - at};
  }

  void transform_blocks(int64_t begin, int64_t end) const {
    Scratch<In> gathered(gathered_ ? std::min(most_, slices_.row) * in_length() : 0);
    Scratch<In> transposed_in(transposed_ ? most_ * transform_.n : 0);
    Scratch<Out> transposed_out(transposed_ && kind == Kind::RealToComplex ? most_ * half_spectrum() : 0);
    for (int64_t number = begin; number < end; ++number) {
      const Block block = block_at(number);
      if constexpr (kind == Kind::RealToComplex)
        if (transposed_) {
          transform_transposed(block, transposed_in.data(), transposed_out.data());
          continue;
        }
      if constexpr (kind == Kind::Complex) {
        if (transposed_) {
          transform_transposed(block, transposed_in.data(), transposed_in.data());
          continue;
        }
        if (copied_) {
          transform_copied(block);
          continue;
        }
      }
      transform_strided(block, gathered.data());
    }
  }

  // Complex slices are transformed in place: `in` is `out`.
  void transform_transposed(const Block& block, In* in, Out* out) const {
    const int64_t n = transform_.n, out_length = kind == Kind::Complex ? n : half_spectrum();
    transpose(in, n, block.in, slices_.in_stride, n, block.count);
    const Plan plan = plan_of(block, slice_layout(1, n), slice_layout(1, out_length), kind == Kind::Complex);
    fourier::transform(plan, in, out);
    transpose(block.out, slices_.out_stride, out, out_length, block.count, out_length);
  }

  void transform_copied(const Block& block) const {
    for (int64_t k = 0; k < transform_.n; ++k)
      std::copy_n(block.in + k * slices_.in_stride, block.count, block.out + k * slices_.out_stride);
    const Layout layout = slice_layout(slices_.out_stride, slices_.out_row);
    fourier::transform(plan_of(block, layout, layout, true), block.out, block.out);
  }

  // In the strides of the tensors, or from `buffer` where the library cannot take those of the
  // input.
  void transform_strided(const Block& block, In* buffer) const {
    const In* in = block.in;
    Layout in_layout = slice_layout(slices_.in_stride, slices_.in_row);
    Layout out_layout = slice_layout(slices_.out_stride, slices_.out_row);
    if (gathered_) {
      gather(block, buffer);
      in = buffer;
      in_layout = slice_layout(1, in_length());
    }
    if (transform_.n == 1) in_layout.strides[0] = out_layout.strides[0] = 1;
    Plan plan = plan_of(block, in_layout, out_layout, in_place_ && !gathered_);
    plan.threaded = threaded_;
    fourier::transform(plan, in, block.out);
  }

  void gather(const Block& block, In* buffer) const {
    const int64_t length = in_length(), n = transform_.n, stride = slices_.in_stride, row = slices_.in_row;
    const In* in = block.in;
    const bool along = std::abs(stride) <= std::abs(row);
    const int64_t outer = along ? block.count : length, inner = along ? length : block.count;
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t slice = along ? i : k, index = along ? k : i;
        buffer[slice * length + index] = in[slice * row + index * stride];
      }
    if constexpr (kind == Kind::ComplexToReal) {
      // The imaginary parts that are zero in the spectrum of a real signal are ignored.
      for (int64_t k = 0; k < block.count; ++k) {
        In* slice = buffer + k * length;
        slice[0] = In(slice[0].real(), 0);
        if (n % 2 == 0) slice[n / 2] = In(slice[n / 2].real(), 0);
      }
    }
  }

  // One slice has no distance to the next, so that plans of single slices are found again.
  Plan plan_of(const Block& block, Layout in, Layout out, bool in_place) const {
    if (block.count == 1) in.distance = out.distance = 0;
    return {.rank = 1,
            .sizes = {transform_.n},
            .batch = block.count,
            .in = in,
            .out = out,
            .kind = kind,
            .forward = transform_.forward,
            .single = sizeof(real_t<Out>) == 4,
            .in_place = in_place,
            .threaded = false,
            .scale = transform_.scale};
  }

  int64_t half_spectrum() const { return transform_.n / 2 + 1; }
  int64_t in_length() const { return kind == Kind::ComplexToReal ? half_spectrum() : transform_.n; }

  const Transform transform_;
  const Slices slices_;
  const In* source_;
  Out* target_;
  bool in_place_ = false, gathered_ = false, threaded_ = false, transposed_ = false, copied_ = false;
  int64_t most_ = 1, blocks_of_row_ = 1;  // slices in a block, blocks in a row of slices
};

template <typename In, typename Out>
void transform_slices(const cb_tensor& input, cb_tensor& output, const Transform& transform) {
  const SlicePlan<In, Out> plan(input, output, transform);
  if (!plan.is_empty()) plan.run();
}

// Transforms a chunk of planes or volumes in one call: dimension 0 is the batch, `dims` are all
// the others. Real input gives half a spectrum along the last of `dims`. False where the strides do
// not allow it.
template <typename In, typename Out>
bool transform_planes(const cb_tensor& in, cb_tensor& out, std::span<const int64_t> dims, int64_t shift, bool forward,
                      double scale) {
  if (dims.size() < 2 || dims.size() > most_dims || out.ndim != static_cast<int64_t>(dims.size()) + 1) return false;
  const bool several = out.sizes[0] > 1;
  Plan plan{};
  plan.rank = dims.size();
  plan.batch = out.sizes[0];
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = dims[k] - shift;
    plan.sizes[k] = in.sizes[d];
    plan.in.strides[k] = in.sizes[d] == 1 ? 1 : in.strides[d];
    plan.out.strides[k] = out.sizes[d] == 1 ? 1 : out.strides[d];
    if (in.sizes[d] == 0 || plan.in.strides[k] <= 0 || plan.out.strides[k] <= 0) return false;
  }
  plan.in.distance = several ? in.strides[0] : 0;
  plan.out.distance = several ? out.strides[0] : 0;
  if (several && (plan.in.distance <= 0 || plan.out.distance <= 0)) return false;
  plan.in_place = in.data == out.data;
  if (plan.in_place && (!std::is_same_v<In, Out> || plan.in != plan.out)) return false;
  plan.kind = kind_of<In, Out>;
  plan.forward = forward;
  plan.single = sizeof(real_t<Out>) == 4;
  plan.scale = scale;
  const LibraryThreads one(1);
  fourier::transform(plan, in.data, out.data);
  return true;
}

// Calls transform(in, out) for chunks of the leading dimensions, which stay in the second cache
// level while the dimensions from `first` on are transformed one by one. Calls it once with the
// whole tensors where chunks do not pay or the leading dimensions cannot be merged. Chunk
// boundaries do not depend on the number of threads.
template <typename F>
void for_each_chunk(const cb_tensor& input, cb_tensor& output, int64_t first, F&& transform) {
  constexpr int64_t max_bytes = int64_t{512} << 10, min_chunk_bytes = int64_t{256} << 10;
  int64_t count = 1, in_step = 0, out_step = 0;
  bool mergeable = true;
  for (int64_t d = first; d-- > 0;) {
    if (output.sizes[d] == 1) continue;
    if (count == 1)
      in_step = input.strides[d], out_step = output.strides[d];
    else
      mergeable &= input.strides[d] == in_step * count && output.strides[d] == out_step * count;
    count *= output.sizes[d];
  }
  int64_t bytes = 2 * itemsize(output.dtype);  // of one leading index in both tensors
  for (int64_t d = first; d < output.ndim; ++d) bytes *= std::max(input.sizes[d], output.sizes[d]);
  if (!mergeable || count < 2 || bytes == 0 || bytes > max_bytes) return transform(input, output);
  const int64_t group = std::clamp<int64_t>(min_chunk_bytes / bytes, 1, std::max<int64_t>(1, count / 16)),
                blocks = (count + group - 1) / group;
  parallel_for(blocks, grain_for(group * bytes), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      int64_t sizes[2][max_dims], strides[2][max_dims];
      const auto chunk_of = [&](const cb_tensor& whole, int side, int64_t step) {
        cb_tensor part = whole;
        part.data = static_cast<std::byte*>(whole.data) + block * group * step * itemsize(whole.dtype);
        sizes[side][0] = std::min(group, count - block * group), strides[side][0] = step;
        part.numel = sizes[side][0];
        part.ndim = 1;
        for (int64_t d = first; d < whole.ndim; ++d) {
          sizes[side][part.ndim] = whole.sizes[d], strides[side][part.ndim++] = whole.strides[d];
          part.numel *= whole.sizes[d];
        }
        part.sizes = sizes[side];
        part.strides = strides[side];
        return part;
      };
      const cb_tensor in = chunk_of(input, 0, in_step);
      cb_tensor out = chunk_of(output, 1, out_step);
      transform(in, out);
    }
  });
}

// The first of two or more dimensions; 0 for a single one, which gains nothing from chunks.
int64_t first_of_several(std::span<const int64_t> dims) {
  return dims.size() < 2 ? 0 : *std::min_element(dims.begin(), dims.end());
}

// (self, dim, forward, scale)
void fft_c2c(Call& call) {
  const arguments::FftC2c args(call);
  const cb_tensor& input = *args.self;
  cb_tensor& output = call.output();
  const auto dims = args.dim;
  const bool forward = args.forward;
  const int64_t first = first_of_several(dims);
  const double scale = args.scale;
  dispatch<ComplexTypes>(output.dtype, [&]<typename T>() {
    for_each_chunk(input, output, first, [&](const cb_tensor& in, cb_tensor& out) {
      const bool is_chunk = &out != &output;
      const int64_t shift = output.ndim - out.ndim;
      if (is_chunk && transform_planes<T, T>(in, out, dims, shift, forward, scale)) return;
      const cb_tensor* from = &in;
      // The last dimension first, whose slices are contiguous. The scale is applied once.
      for (size_t k = dims.size(); k-- > 0;) {
        const int dim = static_cast<int>(dims[k] - shift);
        const int64_t n = out.sizes[dim];
        transform_slices<T, T>(*from, out, {dim, n, forward, k == 0 ? scale : 1.0, is_chunk});
        from = &out;
      }
    });
  });
}

// (self, dim, scale): the first n / 2 + 1 of the n results
void fft_r2c(Call& call) {
  const arguments::FftR2c args(call);
  const cb_tensor& input = *args.self;
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(args.dim);
  dispatch<FullFloatTypes>(input.dtype, [&]<typename T>() {
    const int64_t n = input.sizes[dim];
    transform_slices<T, std::complex<T>>(input, output, {dim, n, true, args.scale, false});
  });
}

// (self, dim, scale): the first n / 2 + 1 results of the last of the dimensions
void fft_r2c_nd(Call& call) {
  const arguments::FftR2cNd args(call);
  const cb_tensor& input = *args.self;
  cb_tensor& output = call.output();
  const auto dims = args.dim;
  const int64_t first = first_of_several(dims);
  const double scale = args.scale;
  dispatch<FullFloatTypes>(input.dtype, [&]<typename T>() {
    using C = std::complex<T>;
    for_each_chunk(input, output, first, [&](const cb_tensor& in, cb_tensor& out) {
      const bool is_chunk = &out != &output;
      const int64_t shift = output.ndim - out.ndim;
      if (is_chunk && transform_planes<T, C>(in, out, dims, shift, true, scale)) return;
      const int last = static_cast<int>(dims.back() - shift);
      transform_slices<T, C>(in, out, {last, in.sizes[last], true, scale, is_chunk});
      for (size_t k = dims.size() - 1; k-- > 0;) {
        const int dim = static_cast<int>(dims[k] - shift);
        transform_slices<C, C>(out, out, {dim, out.sizes[dim], true, 1.0, is_chunk});
      }
    });
  });
}

// (self, dim, n, scale): the n real results whose first n / 2 + 1 coefficients are given
void fft_c2r(Call& call) {
  const arguments::FftC2r args(call);
  const cb_tensor& input = *args.self;
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(args.dim);
  const int64_t n = args.n;
  dispatch<FullFloatTypes>(output.dtype, [&]<typename T>() {
    transform_slices<std::complex<T>, T>(input, output, {dim, n, false, args.scale, false});
  });
}

}  // namespace

void register_fft(KernelTable& table) {
  table.add<fft_c2c>("_fft_c2c");
  table.add<fft_r2c>("_fft_r2c");
  table.add<fft_r2c_nd>("_fft_r2c_nd");
  table.add<fft_c2r>("_fft_c2r");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
