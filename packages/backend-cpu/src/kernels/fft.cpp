// Fourier transforms along dimensions, on MKL's.
//
// The lines along a dimension are handed to MKL where they lie, a few neighbouring ones at a time, and it writes the results where
// they belong; what it cannot take (a line that runs backwards or is expanded, coefficients that are to be looked at first) is
// gathered before. Lines are divided among threads, each line is transformed by one: results do not depend on the number of
// threads. A single line is left to MKL's own threads, unless that is asked for of it, too. Small planes and blocks (the last two
// or three dimensions, all of them transformed) are handed to MKL whole: it turns them while they are in the first cache.
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

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../iterate.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"
#include "../same_bits.hpp"
#include "../transpose.hpp"

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

// How what one call of MKL transforms lies in memory: the strides within a line (a plane, a block), and `distance` from line to
// line.
struct Layout {
  std::array<int64_t, most_dims> strides;
  int64_t distance;
  auto operator<=>(const Layout&) const = default;
};

enum class Kind { Complex, RealToComplex, ComplexToReal };

struct Plan {
  size_t rank;
  std::array<int64_t, most_dims> sizes;
  int64_t lines;
  Layout in, out;
  Kind kind;
  bool forward, single, in_place, threaded;
  double scale;
  auto operator<=>(const Plan&) const = default;
};
// Of lines: `stride` from element to element.
Layout line_layout(int64_t stride, int64_t distance) {
  return {{stride, 0, 0}, distance};
}

// The committed descriptor of a plan; kept by the thread that made it, since committing costs as much as many short transforms.
// The scale is that of both directions. MKL names the two sides by the domain: what goes into a forward transform comes out of a
// backward one.
DFTI_DESCRIPTOR* descriptor_for(const Plan& plan) {
  constexpr size_t most = 64;
  thread_local std::map<Plan, Descriptor> kept;
  if (auto found = kept.find(plan); found != kept.end()) return found->second.get();
  if (kept.size() >= most) kept.clear();
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
  std::array<MKL_LONG, most_dims + 1> forward_strides{}, backward_strides{};  // the first is an offset
  std::transform(forward_side.strides.begin(), forward_side.strides.end(), forward_strides.begin() + 1, integer);
  std::transform(backward_side.strides.begin(), backward_side.strides.end(), backward_strides.begin() + 1, integer);
  check(DftiSetValue(raw, DFTI_FWD_STRIDES, forward_strides.data()));
  check(DftiSetValue(raw, DFTI_BWD_STRIDES, backward_strides.data()));
  if (plan.lines > 1) {
    check(DftiSetValue(raw, DFTI_NUMBER_OF_TRANSFORMS, integer(plan.lines)));
    check(DftiSetValue(raw, DFTI_FWD_DISTANCE, integer(forward_side.distance)));
    check(DftiSetValue(raw, DFTI_BWD_DISTANCE, integer(backward_side.distance)));
  }
  check(DftiSetValue(raw, DFTI_FORWARD_SCALE, plan.scale));
  check(DftiSetValue(raw, DFTI_BACKWARD_SCALE, plan.scale));
  if (!plan.threaded) check(DftiSetValue(raw, DFTI_THREAD_LIMIT, integer(1)));
  check(DftiCommitDescriptor(raw));
  return kept.emplace(plan, std::move(made)).first->second.get();
}

// The lines of two tensors along one dimension. They are numbered by the other dimensions, those in which neighbours lie closest
// in the output innermost; `in_row` and `out_row` are the strides of that dimension, in which there are `row` lines.
class Lines {
 public:
  Lines(const cb_tensor& in, const cb_tensor& out, int dim) : in_stride(in.strides[dim]), out_stride(out.strides[dim]) {
    std::vector<int> dims;
    for (int d = 0; d < out.ndim; ++d)
      if (d != dim && out.sizes[d] != 1) dims.push_back(d);
    std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return out.strides[a] > out.strides[b]; });
    for (int d : dims) {
      count *= out.sizes[d];
      // A dimension that goes on where the one before it ends is one with it.
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

  // Offsets of a line, in elements.
  std::pair<int64_t, int64_t> offsets(int64_t line) const {
    int64_t in = 0, out = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      in += line % sizes_[d] * in_strides_[d];
      out += line % sizes_[d] * out_strides_[d];
      line /= sizes_[d];
    }
    return {in, out};
  }

  int64_t in_stride, out_stride, count = 1, row = 1, in_row = 0, out_row = 0;

 private:
  std::vector<int64_t> sizes_, in_strides_, out_strides_;
};

// How many neighbouring lines one call of MKL takes: enough to make the call's own cost small and to use whole cache lines.
int64_t lines_at_once(int64_t n) {
  return std::max<int64_t>(16, 32768 / n);
}

// out[i + j * out_step] = in[i * in_step + j] for i < rows and j < columns, in tiles that touch whole cache lines on both sides.
template <typename T>
void turn(T* out, int64_t out_step, const T* in, int64_t in_step, int64_t rows, int64_t columns) {
  constexpr int64_t side = 16;
  for (int64_t i = 0; i < rows; i += side)
    for (int64_t j = 0; j < columns; j += side) {
      turn_tile(out + i + j * out_step, out_step, in + i * in_step + j, in_step, std::min(side, rows - i),
                std::min(side, columns - j));
    }
}

// Transforms the lines along `dim`: `in_length` elements of In each become a line of `n` points, times `scale`. The lines of a
// slab, of which other threads have others, are not divided further.
template <typename In, typename Out>
void transform_lines(const cb_tensor& input, cb_tensor& output, int dim, int64_t n, int64_t in_length, Kind kind, bool forward,
                     double scale, bool slab) {
  const Lines lines(input, output, dim);
  if (lines.count == 0 || n == 0) return;
  const auto* source = static_cast<const In*>(input.data);
  auto* target = static_cast<Out*>(output.data);
  const bool in_place = static_cast<const void*>(source) == static_cast<const void*>(target) && lines.in_stride == lines.out_stride;
  const bool gathered =
      kind == Kind::ComplexToReal || (in_length > 1 && lines.in_stride <= 0) || (lines.row > 1 && lines.in_row <= 0);
  const bool threaded = lines.count == 1 && !wants_same_bits();
  // Lines across memory whose neighbours lie side by side. Real ones are turned, so that MKL sees them in one piece; complex ones
  // are brought to where the result goes, for MKL takes half as long in place.
  const bool side_by_side = !threaded && !gathered && n > 1 && lines.in_stride > 1 && lines.in_row == 1 && lines.out_row == 1;
  const bool turned = side_by_side && kind == Kind::RealToComplex && n >= 32;
  const bool brought = side_by_side && kind == Kind::Complex && !in_place;
  // No fewer blocks than threads may take.
  const int64_t most = turned ? 16 : slab ? lines_at_once(n) : std::min(lines_at_once(n), std::max<int64_t>(16, lines.count / 16));
  const int64_t out_length = n / 2 + 1;
  const int64_t blocks_of_row = (lines.row + most - 1) / most, blocks = lines.count / lines.row * blocks_of_row;
  // Blocks of a row are as large as one another, but for one line.
  const auto start_of = [&](int64_t block) { return lines.row * block / blocks_of_row; };
  auto work = [&](int64_t begin, int64_t end) {
    Scratch<In> memory(gathered ? std::min(most, lines.row) * in_length : 0);
    In* buffer = memory.data();
    Scratch<In> turned_in(turned ? most * n : 0);
    Scratch<Out> turned_out(turned ? most * out_length : 0);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = start_of(block % blocks_of_row), here = start_of(block % blocks_of_row + 1) - at;
      const auto [from, to] = lines.offsets(block / blocks_of_row * lines.row + at);
      const In* in = source + from;
      if constexpr (!std::is_same_v<In, Out> && !is_complex_v<In>) {
        if (turned) {
          turn(turned_in.data(), n, in, lines.in_stride, n, here);
          const Plan plan{1,
                          {n},
                          here,
                          line_layout(1, here == 1 ? 0 : n),
                          line_layout(1, here == 1 ? 0 : out_length),
                          kind,
                          forward,
                          sizeof(In) == 4,
                          false,
                          false,
                          scale};
          check(DftiComputeForward(descriptor_for(plan), turned_in.data(), turned_out.data()));
          turn(target + to, lines.out_stride, turned_out.data(), out_length, here, out_length);
          continue;
        }
      }
      if constexpr (std::is_same_v<In, Out>) {
        if (brought) {
          for (int64_t k = 0; k < n; ++k) std::copy_n(in + k * lines.in_stride, here, target + to + k * lines.out_stride);
          const Layout layout = line_layout(lines.out_stride, here == 1 ? 0 : lines.out_row);
          const Plan plan{1, {n}, here, layout, layout, kind, forward, sizeof(real_t<Out>) == 4, true, false, scale};
          check(forward ? DftiComputeForward(descriptor_for(plan), target + to)
                        : DftiComputeBackward(descriptor_for(plan), target + to));
          continue;
        }
      }
      Layout in_layout = line_layout(lines.in_stride, lines.in_row);
      if (gathered) {
        const bool along = std::abs(lines.in_stride) <= std::abs(lines.in_row);
        for (int64_t i = 0; i < (along ? here : in_length); ++i)
          for (int64_t k = 0; k < (along ? in_length : here); ++k) {
            const int64_t line = along ? i : k, place = along ? k : i;
            buffer[line * in_length + place] = in[line * lines.in_row + place * lines.in_stride];
          }
        if constexpr (!std::is_same_v<In, Out> && is_complex_v<In>) {
          // What a real signal cannot have is not looked at.
          for (int64_t k = 0; k < here; ++k) {
            In* line = buffer + k * in_length;
            line[0] = In(line[0].real(), 0);
            if (n % 2 == 0) line[n / 2] = In(line[n / 2].real(), 0);
          }
        }
        in = buffer;
        in_layout = line_layout(1, in_length);
      }
      Layout out_layout = line_layout(lines.out_stride, lines.out_row);
      if (n == 1) in_layout.strides[0] = out_layout.strides[0] = 1;
      if (here == 1) in_layout.distance = out_layout.distance = 0;
      const Plan plan{1,        {n},  here, in_layout, out_layout, kind, forward, sizeof(real_t<Out>) == 4, in_place && !gathered,
                      threaded, scale};
      DFTI_DESCRIPTOR* descriptor = descriptor_for(plan);
      auto* unchanged = const_cast<In*>(in);  // MKL takes it so, and does not write to it
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

// Transforms the slab's first dimension of planes or blocks, where MKL can take them whole: `dims` are all the others, and go
// forwards in memory on both sides. The real ones are halved along the last of `dims`. False where it cannot.
template <typename In, typename Out>
bool transform_planes(const cb_tensor& in, cb_tensor& out, std::span<const int64_t> dims, int64_t shift, bool forward,
                      double scale) {
  if (dims.size() < 2 || dims.size() > most_dims || out.ndim != static_cast<int64_t>(dims.size()) + 1) return false;
  const bool several = out.sizes[0] > 1;
  Plan plan{};
  plan.rank = dims.size();
  plan.lines = out.sizes[0];
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
    check(forward ? DftiComputeForward(descriptor, in.data, out.data) : DftiComputeBackward(descriptor, in.data, out.data));
  return true;
}

// Calls transform(in, out) for slabs of the dimensions from `first` on, which lie in the second cache while one of these dimensions
// after the other is transformed; or once, where there is nothing to divide: one slab, a large one, or leading dimensions that are
// not one. Where slabs begin does not depend on the number of threads.
template <typename F>
void over_slabs(const cb_tensor& input, cb_tensor& output, int64_t first, F&& transform) {
  constexpr int64_t largest = int64_t{512} << 10, least = int64_t{256} << 10;
  int64_t count = 1, in_step = 0, out_step = 0;
  bool one = true;
  for (int64_t d = first; d-- > 0;) {
    if (output.sizes[d] == 1) continue;
    if (count == 1)
      in_step = input.strides[d], out_step = output.strides[d];
    else
      one &= input.strides[d] == in_step * count && output.strides[d] == out_step * count;
    count *= output.sizes[d];
  }
  int64_t bytes = 2 * itemsize(output.dtype);  // of a slab of both tensors
  for (int64_t d = first; d < output.ndim; ++d) bytes *= std::max(input.sizes[d], output.sizes[d]);
  if (!one || count < 2 || bytes == 0 || bytes > largest) return transform(input, output);
  const int64_t group = std::clamp<int64_t>(least / bytes, 1, std::max<int64_t>(1, count / 16)),
                blocks = (count + group - 1) / group;
  parallel_for(blocks, grain_for(group * bytes), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      int64_t sizes[2][max_dims], strides[2][max_dims];
      const auto slab = [&](const cb_tensor& whole, int side, int64_t step) {
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
      const cb_tensor in = slab(input, 0, in_step);
      cb_tensor out = slab(output, 1, out_step);
      transform(in, out);
    }
  });
}

// Of two or more dimensions the first one, behind which the slabs of over_slabs lie; else 0, for nothing is done twice.
int64_t first_of_several(std::span<const int64_t> dims) {
  return dims.size() < 2 ? 0 : *std::min_element(dims.begin(), dims.end());
}

// (self, dim, forward, scale)
void complex_to_complex(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const auto dims = call.ints(1);
  const bool forward = call.boolean(2);
  const int64_t first = first_of_several(dims);
  const double scale = call.real(3);
  dispatch<ComplexTypes>(output.dtype, [&]<typename T>() {
    over_slabs(input, output, first, [&](const cb_tensor& in, cb_tensor& out) {
      const bool slab = &out != &output;
      const int64_t shift = output.ndim - out.ndim;
      if (slab && transform_planes<T, T>(in, out, dims, shift, forward, scale)) return;
      const cb_tensor* from = &in;
      // The last dimension, whose lines lie together, first; the scale once.
      for (size_t k = dims.size(); k-- > 0;) {
        const int dim = static_cast<int>(dims[k] - shift);
        const int64_t n = out.sizes[dim];
        transform_lines<T, T>(*from, out, dim, n, n, Kind::Complex, forward, k == 0 ? scale : 1.0, slab);
        from = &out;
      }
    });
  });
}

// (self, dim, scale): the first n / 2 + 1 of the n results
void real_to_complex(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(call.integer(1));
  dispatch<FullFloatTypes>(input.dtype, [&]<typename T>() {
    const int64_t n = input.sizes[dim];
    transform_lines<T, std::complex<T>>(input, output, dim, n, n, Kind::RealToComplex, true, call.real(2), false);
  });
}

// (self, dim, scale): of the last of the dimensions the first n / 2 + 1 results
void several_real_to_complex(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const auto dims = call.ints(1);
  const int64_t first = first_of_several(dims);
  const double scale = call.real(2);
  dispatch<FullFloatTypes>(input.dtype, [&]<typename T>() {
    using C = std::complex<T>;
    over_slabs(input, output, first, [&](const cb_tensor& in, cb_tensor& out) {
      const bool slab = &out != &output;
      const int64_t shift = output.ndim - out.ndim;
      if (slab && transform_planes<T, C>(in, out, dims, shift, true, scale)) return;
      const int last = static_cast<int>(dims.back() - shift);
      transform_lines<T, C>(in, out, last, in.sizes[last], in.sizes[last], Kind::RealToComplex, true, scale, slab);
      for (size_t k = dims.size() - 1; k-- > 0;) {
        const int dim = static_cast<int>(dims[k] - shift);
        transform_lines<C, C>(out, out, dim, out.sizes[dim], out.sizes[dim], Kind::Complex, true, 1.0, slab);
      }
    });
  });
}

// (self, dim, n, scale): the n real results whose first n / 2 + 1 coefficients are given
void complex_to_real(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(call.integer(1));
  const int64_t n = call.integer(2);
  dispatch<FullFloatTypes>(output.dtype, [&]<typename T>() {
    transform_lines<std::complex<T>, T>(input, output, dim, n, n / 2 + 1, Kind::ComplexToReal, false, call.real(3), false);
  });
}

}  // namespace

void register_fft(KernelTable& table) {
  table.add<complex_to_complex>("fft_c2c");
  table.add<real_to_complex>("fft_r2c");
  table.add<several_real_to_complex>("fft_r2c_several");
  table.add<complex_to_real>("fft_c2r");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
