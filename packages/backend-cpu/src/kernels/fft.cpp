// Fourier transforms along dimensions, on MKL's one-dimensional ones.
//
// Lines of any strides are gathered into contiguous memory, a few neighbouring ones at a time, transformed, and written where they
// belong. Lines are divided among threads, each line is transformed by one: results do not depend on the number of threads. A
// single line is left to MKL's own threads.
#include <map>
#include <memory>
#include <tuple>

#include <mkl_dfti.h>

#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

void check(MKL_LONG status) {
  if (status != DFTI_NO_ERROR) throw failure(CB_RUNTIME_ERROR, "MKL FFT error: %s", DftiErrorMessage(status));
}

struct FreeDescriptor {
  void operator()(DFTI_DESCRIPTOR* descriptor) const { DftiFreeDescriptor(&descriptor); }
};
using Descriptor = std::unique_ptr<DFTI_DESCRIPTOR, FreeDescriptor>;

// A committed transform of n points; kept by the thread that made it, since committing costs as much as many short transforms.
// Real ones are out of place, complex ones in place.
DFTI_DESCRIPTOR* descriptor_for(int64_t n, bool single, bool real, bool threaded) {
  using Key = std::tuple<int64_t, bool, bool, bool>;
  constexpr size_t most = 64;
  thread_local std::map<Key, Descriptor> kept;
  const Key key{n, single, real, threaded};
  if (auto found = kept.find(key); found != kept.end()) return found->second.get();
  if (kept.size() >= most) kept.clear();
  DFTI_DESCRIPTOR* raw = nullptr;
  const auto dimensions = static_cast<MKL_LONG>(1), points = static_cast<MKL_LONG>(n);
  check((DftiCreateDescriptor)(&raw, single ? DFTI_SINGLE : DFTI_DOUBLE, real ? DFTI_REAL : DFTI_COMPLEX, dimensions, points));
  Descriptor made(raw);
  if (real) {
    check(DftiSetValue(raw, DFTI_PLACEMENT, DFTI_NOT_INPLACE));
    check(DftiSetValue(raw, DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX));
  }
  if (!threaded) check(DftiSetValue(raw, DFTI_THREAD_LIMIT, static_cast<MKL_LONG>(1)));
  check(DftiCommitDescriptor(raw));
  return kept.emplace(key, std::move(made)).first->second.get();
}

// The lines of a tensor along one dimension, numbered so that neighbours in memory (the last of the other dimensions) are
// neighbours.
class Lines {
 public:
  Lines(const cb_tensor& t, int dim) : stride_(t.strides[dim]) {
    for (int d = 0; d < t.ndim; ++d)
      if (d != dim) {
        sizes_.push_back(t.sizes[d]);
        strides_.push_back(t.strides[d]);
        count_ *= t.sizes[d];
      }
  }
  int64_t count() const { return count_; }
  int64_t stride() const { return stride_; }
  int64_t offset(int64_t line) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset += line % sizes_[d] * strides_[d];
      line /= sizes_[d];
    }
    return offset;
  }

 private:
  int64_t stride_, count_ = 1;
  std::vector<int64_t> sizes_, strides_;
};

constexpr int64_t lines_at_once = 8;

// transform(descriptor, in, out) on each line: `in_length` elements of In become `out_length` of Out, each times `scale`.
template <typename In, typename Out, bool Real, typename F>
void transform_lines(const cb_tensor& input, cb_tensor& output, int dim, int64_t n, int64_t in_length, int64_t out_length,
                     double scale, F&& transform) {
  const Lines from(input, dim), to(output, dim);
  if (to.count() == 0 || n == 0) return;
  constexpr bool single = sizeof(real_t<Out>) == 4;
  const auto factor = static_cast<real_t<Out>>(scale);
  const bool threaded = to.count() == 1;
  use_library_threads(threaded ? INT32_MAX : 1);
  const auto* source = static_cast<const In*>(input.data);
  auto* target = static_cast<Out*>(output.data);
  const int64_t blocks = (to.count() + lines_at_once - 1) / lines_at_once;
  auto work = [&](int64_t begin, int64_t end) {
    DFTI_DESCRIPTOR* descriptor = descriptor_for(n, single, Real, threaded);
    std::vector<In> in(static_cast<size_t>(lines_at_once * in_length));
    std::vector<Out> separate(static_cast<size_t>(Real ? lines_at_once * out_length : 0));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * lines_at_once, lines = std::min(lines_at_once, to.count() - first);
      int64_t in_offsets[lines_at_once], out_offsets[lines_at_once];
      for (int64_t k = 0; k < lines; ++k) {
        in_offsets[k] = from.offset(first + k);
        out_offsets[k] = to.offset(first + k);
      }
      if (from.stride() == 1) {
        for (int64_t k = 0; k < lines; ++k) std::copy_n(source + in_offsets[k], in_length, in.data() + k * in_length);
      } else {
        for (int64_t i = 0; i < in_length; ++i)
          for (int64_t k = 0; k < lines; ++k)
            in[static_cast<size_t>(k * in_length + i)] = source[in_offsets[k] + i * from.stride()];
      }
      Out* results;
      if constexpr (Real)
        results = separate.data();
      else
        results = in.data();
      for (int64_t k = 0; k < lines; ++k) transform(descriptor, in.data() + k * in_length, results + k * out_length);
      if (to.stride() == 1) {
        for (int64_t k = 0; k < lines; ++k)
          for (int64_t i = 0; i < out_length; ++i) target[out_offsets[k] + i] = results[k * out_length + i] * factor;
      } else {
        for (int64_t i = 0; i < out_length; ++i)
          for (int64_t k = 0; k < lines; ++k) target[out_offsets[k] + i * to.stride()] = results[k * out_length + i] * factor;
      }
    }
  };
  if (threaded)
    work(0, 1);
  else
    parallel_for(blocks, grain_for(lines_at_once * n * 8), [&](int64_t begin, int64_t end) {
      use_library_threads(1);
      work(begin, end);
    });
}

// (self, dim, forward, scale)
void complex_to_complex(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const auto dims = call.ints(1);
  const bool forward = call.boolean(2);
  dispatch<ComplexTypes>(output.dtype, [&]<typename T>() {
    const cb_tensor* from = &input;
    // The last dimension, whose lines lie together, first; the scale once.
    for (size_t k = dims.size(); k-- > 0;) {
      const int dim = static_cast<int>(dims[k]);
      const int64_t n = output.sizes[dim];
      transform_lines<T, T, false>(*from, output, dim, n, n, n, k == 0 ? call.real(3) : 1.0,
                                   [&](DFTI_DESCRIPTOR* descriptor, T* line, T*) {
                                     check(forward ? DftiComputeForward(descriptor, line) : DftiComputeBackward(descriptor, line));
                                   });
      from = &output;
    }
  });
}

// (self, dim, scale): the first n / 2 + 1 of the n results
void real_to_complex(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(call.integer(1));
  dispatch<FullFloatTypes>(input.dtype, [&]<typename T>() {
    using C = std::complex<T>;
    transform_lines<T, C, true>(
        input, output, dim, input.sizes[dim], input.sizes[dim], output.sizes[dim], call.real(2),
        [&](DFTI_DESCRIPTOR* descriptor, T* in, C* out) { check(DftiComputeForward(descriptor, in, out)); });
  });
}

// (self, dim, n, scale): the n real results whose first n / 2 + 1 coefficients are given
void complex_to_real(Call& call) {
  const cb_tensor& input = call.tensor(0);
  cb_tensor& output = call.output();
  const int dim = static_cast<int>(call.integer(1));
  const int64_t n = call.integer(2);
  dispatch<FullFloatTypes>(output.dtype, [&]<typename T>() {
    using C = std::complex<T>;
    transform_lines<C, T, true>(input, output, dim, n, n / 2 + 1, n, call.real(3), [&](DFTI_DESCRIPTOR* descriptor, C* in, T* out) {
      // What a real signal cannot have is not looked at.
      in[0] = C(in[0].real(), T(0));
      if (n % 2 == 0) in[n / 2] = C(in[n / 2].real(), T(0));
      check(DftiComputeBackward(descriptor, in, out));
    });
  });
}

}  // namespace

void register_fft(KernelTable& table) {
  table.add<complex_to_complex>("fft_c2c");
  table.add<real_to_complex>("fft_r2c");
  table.add<complex_to_real>("fft_c2r");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
