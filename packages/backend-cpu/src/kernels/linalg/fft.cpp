// Fourier transforms along dimensions, by MKL.
//
// MKL reads the slices along a dimension in place, several neighbours per call, and writes to the
// result. Slices that MKL cannot take (negative or zero strides, coefficients that must be
// corrected first) are gathered into a buffer. Each slice is transformed by one thread, so results
// do not depend on the number of threads. A single slice uses MKL's own threads, unless
// deterministic results are asked for. Small planes and volumes (the last two or three dimensions,
// all of them transformed) are handed to MKL whole, which transforms them within the first cache
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

#include <mkl_dfti.h>

#include "candelabra/arguments/fft.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "threads/deterministic.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

void check(MKL_LONG status) {
  if (status != DFTI_NO_ERROR) throw failure(CB_RUNTIME_ERROR, "MKL FFT error: %s", DftiErrorMessage(status));
}

struct FreeDescriptor {
  void operator()(DFTI_DESCRIPTOR* descriptor) const { DftiFreeDescriptor(&descriptor); }
};
using Descriptor = std::unique_ptr<DFTI_DESCRIPTOR, FreeDescriptor>;

constexpr size_t most_dims = 3;  // that one call of MKL transforms

// The memory layout of one side of an MKL call: strides within a slice (or plane, or volume), and
// `distance` between slices.
struct Layout {
  std::array<int64_t, most_dims> strides;
  int64_t distance;
  auto operator<=>(const Layout&) const = default;
};

enum class Kind { Complex, RealToComplex, ComplexToReal };

struct Plan {
  size_t rank;
  std::array<int64_t, most_dims> sizes;
  int64_t batch;
  Layout in, out;
  Kind kind;
  bool forward, single, in_place, threaded;
  double scale;
  auto operator<=>(const Plan&) const = default;
};
// Slices with one `stride` between elements.
Layout slice_layout(int64_t stride, int64_t distance) {
  return {{stride, 0, 0}, distance};
}

// The committed descriptor of a plan, cached per thread, since committing costs as much as many
// short transforms. The scale applies to both directions. MKL names the two sides by domain: the
// forward domain is the input of a forward transform and the output of a backward one.
DFTI_DESCRIPTOR* descriptor_for(const Plan& plan) {
  constexpr size_t capacity = 64;
  thread_local std::map<Plan, Descriptor> cache;
  if (auto found = cache.find(plan); found != cache.end()) return found->second.get();
  if (cache.size() >= capacity) cache.clear();
  DFTI_DESCRIPTOR* raw = nullptr;
  const auto integer = [](int64_t value) { return static_cast<MKL_LONG>(value); };
  const auto precision = plan.single ? DFTI_SINGLE : DFTI_DOUBLE;
  const auto domain = plan.kind == Kind::Complex ? DFTI_COMPLEX : DFTI_REAL;
  std::array<MKL_LONG, most_dims> sizes;
  std::transform(plan.sizes.begin(), plan.sizes.end(), sizes.begin(), integer);
  check(plan.rank == 1 ? (DftiCreateDescriptor)(&raw, precision, domain, integer(1), sizes[0])
                       : (DftiCreateDescriptor)(&raw, precision, domain, integer(plan.rank), sizes.data()));
  Descriptor made(raw);
  check(DftiSetValue(raw, DFTI_PLACEMENT, plan.in_place ? DFTI_INPLACE : DFTI_NOT_INPLACE));
  if (plan.kind != Kind::Complex) check(DftiSetValue(raw, DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX));
  const Layout& forward_side = plan.forward ? plan.in : plan.out;
  const Layout& backward_side = plan.forward ? plan.out : plan.in;
  // The first is an offset
  std::array<MKL_LONG, most_dims + 1> forward_strides{}, backward_strides{};
  std::transform(forward_side.strides.begin(), forward_side.strides.end(), forward_strides.begin() + 1, integer);
  std::transform(backward_side.strides.begin(), backward_side.strides.end(), backward_strides.begin() + 1, integer);
  check(DftiSetValue(raw, DFTI_FWD_STRIDES, forward_strides.data()));
  check(DftiSetValue(raw, DFTI_BWD_STRIDES, backward_strides.data()));
  if (plan.batch > 1) {
    check(DftiSetValue(raw, DFTI_NUMBER_OF_TRANSFORMS, integer(plan.batch)));
    check(DftiSetValue(raw, DFTI_FWD_DISTANCE, integer(forward_side.distance)));
    check(DftiSetValue(raw, DFTI_BWD_DISTANCE, integer(backward_side.distance)));
  }
  check(DftiSetValue(raw, DFTI_FORWARD_SCALE, plan.scale));
  check(DftiSetValue(raw, DFTI_BACKWARD_SCALE, plan.scale));
  if (!plan.threaded) check(DftiSetValue(raw, DFTI_THREAD_LIMIT, integer(1)));
  check(DftiCommitDescriptor(raw));
  return cache.emplace(plan, std::move(made)).first->second.get();
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

// The number of neighbouring slices per MKL call: enough to hide the cost of the call and to use
// whole cache lines.
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

// Transforms the slices along `dim`: `in_length` elements of In each become a slice of `n` points,
// times `scale`. The slices of a chunk are not divided further: other threads have other chunks.
template <typename In, typename Out>
void transform_slices(const cb_tensor& input, cb_tensor& output, int dim, int64_t n, int64_t in_length, Kind kind,
                      bool forward, double scale, bool is_chunk) {
  const Slices slices(input, output, dim);
  if (slices.count == 0 || n == 0) return;
  const auto* source = static_cast<const In*>(input.data);
  auto* target = static_cast<Out*>(output.data);
  const bool in_place =
      static_cast<const void*>(source) == static_cast<const void*>(target) && slices.in_stride == slices.out_stride;
  const bool gathered =
      kind == Kind::ComplexToReal || (in_length > 1 && slices.in_stride <= 0) || (slices.row > 1 && slices.in_row <= 0);
  const bool threaded = slices.count == 1 && !is_deterministic();
  // Strided slices whose neighbours are adjacent in memory. Real ones are transposed, so that MKL
  // sees them contiguous. Complex ones are copied to the result first, since MKL is faster in
  // place.
  const bool adjacent =
      !threaded && !gathered && n > 1 && slices.in_stride > 1 && slices.in_row == 1 && slices.out_row == 1;
  const bool transposed = adjacent && kind == Kind::RealToComplex && n >= 32;
  const bool copied = adjacent && kind == Kind::Complex && !in_place;
  // At least as many blocks as there may be threads.
  const int64_t most = transposed ? 16
                       : is_chunk ? slices_per_call(n)
                                  : std::min(slices_per_call(n), std::max<int64_t>(16, slices.count / 16));
  const int64_t out_length = n / 2 + 1;
  const int64_t blocks_of_row = (slices.row + most - 1) / most, blocks = slices.count / slices.row * blocks_of_row;
  // The blocks of a row differ in size by at most one slice.
  const auto start_of = [&](int64_t block) { return slices.row * block / blocks_of_row; };
  auto work = [&](int64_t begin, int64_t end) {
    Scratch<In> memory(gathered ? std::min(most, slices.row) * in_length : 0);
    In* buffer = memory.data();
    Scratch<In> transposed_in(transposed ? most * n : 0);
    Scratch<Out> transposed_out(transposed ? most * out_length : 0);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = start_of(block % blocks_of_row), here = start_of(block % blocks_of_row + 1) - at;
      const auto [from, to] = slices.offsets(block / blocks_of_row * slices.row + at);
      const In* in = source + from;
      if constexpr (!std::is_same_v<In, Out> && !is_complex_v<In>) {
        if (transposed) {
          transpose(transposed_in.data(), n, in, slices.in_stride, n, here);
          const Plan plan{1,
                          {n},
                          here,
                          slice_layout(1, here == 1 ? 0 : n),
                          slice_layout(1, here == 1 ? 0 : out_length),
                          kind,
                          forward,
                          sizeof(In) == 4,
                          false,
                          false,
                          scale};
          check(DftiComputeForward(descriptor_for(plan), transposed_in.data(), transposed_out.data()));
          transpose(target + to, slices.out_stride, transposed_out.data(), out_length, here, out_length);
          continue;
        }
      }
      if constexpr (std::is_same_v<In, Out>) {
        if (copied) {
          for (int64_t k = 0; k < n; ++k)
            std::copy_n(in + k * slices.in_stride, here, target + to + k * slices.out_stride);
          const Layout layout = slice_layout(slices.out_stride, here == 1 ? 0 : slices.out_row);
          const Plan plan{1, {n}, here, layout, layout, kind, forward, sizeof(real_t<Out>) == 4, true, false, scale};
          check(forward ? DftiComputeForward(descriptor_for(plan), target + to)
                        : DftiComputeBackward(descriptor_for(plan), target + to));
          continue;
        }
      }
      Layout in_layout = slice_layout(slices.in_stride, slices.in_row);
      if (gathered) {
        const bool along = std::abs(slices.in_stride) <= std::abs(slices.in_row);
        for (int64_t i = 0; i < (along ? here : in_length); ++i)
          for (int64_t k = 0; k < (along ? in_length : here); ++k) {
            const int64_t slice = along ? i : k, index = along ? k : i;
            buffer[slice * in_length + index] = in[slice * slices.in_row + index * slices.in_stride];
          }
        if constexpr (!std::is_same_v<In, Out> && is_complex_v<In>) {
          // The imaginary parts that are zero in the spectrum of a real signal are ignored.
          for (int64_t k = 0; k < here; ++k) {
            In* slice = buffer + k * in_length;
            slice[0] = In(slice[0].real(), 0);
            if (n % 2 == 0) slice[n / 2] = In(slice[n / 2].real(), 0);
          }
        }
        in = buffer;
        in_layout = slice_layout(1, in_length);
      }
      Layout out_layout = slice_layout(slices.out_stride, slices.out_row);
      if (n == 1) in_layout.strides[0] = out_layout.strides[0] = 1;
      if (here == 1) in_layout.distance = out_layout.distance = 0;
      const Plan plan{
          1,        {n},  here, in_layout, out_layout, kind, forward, sizeof(real_t<Out>) == 4, in_place && !gathered,
          threaded, scale};
      DFTI_DESCRIPTOR* descriptor = descriptor_for(plan);
      auto* unchanged = const_cast<In*>(in);  // MKL does not write to it
      if (plan.in_place)
        check(forward ? DftiComputeForward(descriptor, target + to) : DftiComputeBackward(descriptor, target + to));
      else
        check(forward ? DftiComputeForward(descriptor, unchanged, target + to)
                      : DftiComputeBackward(descriptor, unchanged, target + to));
    }
  };
  const LibraryThreads threads(threaded ? INT32_MAX : 1);
  if (threaded)
    work(0, 1);
  else
    parallel_for(blocks, grain_for(most * n * 8), [&](int64_t begin, int64_t end) {
      const LibraryThreads one(1);
      work(begin, end);
    });
}

// Transforms a chunk of planes or volumes in one MKL call: dimension 0 is the batch, `dims` are all
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
  plan.kind = std::is_same_v<In, Out> ? Kind::Complex : Kind::RealToComplex;
  plan.forward = forward;
  plan.single = sizeof(real_t<Out>) == 4;
  plan.scale = scale;
  const LibraryThreads one(1);
  DFTI_DESCRIPTOR* descriptor = descriptor_for(plan);
  if (plan.in_place)
    check(forward ? DftiComputeForward(descriptor, out.data) : DftiComputeBackward(descriptor, out.data));
  else
    check(forward ? DftiComputeForward(descriptor, in.data, out.data)
                  : DftiComputeBackward(descriptor, in.data, out.data));
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
        transform_slices<T, T>(*from, out, dim, n, n, Kind::Complex, forward, k == 0 ? scale : 1.0, is_chunk);
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
    transform_slices<T, std::complex<T>>(input, output, dim, n, n, Kind::RealToComplex, true, args.scale, false);
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
      transform_slices<T, C>(in, out, last, in.sizes[last], in.sizes[last], Kind::RealToComplex, true, scale, is_chunk);
      for (size_t k = dims.size() - 1; k-- > 0;) {
        const int dim = static_cast<int>(dims[k] - shift);
        transform_slices<C, C>(out, out, dim, out.sizes[dim], out.sizes[dim], Kind::Complex, true, 1.0, is_chunk);
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
    transform_slices<std::complex<T>, T>(input, output, dim, n, n / 2 + 1, Kind::ComplexToReal, false, args.scale,
                                         false);
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
