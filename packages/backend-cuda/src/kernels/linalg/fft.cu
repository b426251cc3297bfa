// Fourier transforms along dimensions, by cuFFT. cuFFT transforms the last dimensions of contiguous
// memory, all batches in one call. Other layouts are copied before and after: that is cheaper than
// one call for each batch.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "candelabra/arguments/fft.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"
#include "vendor/cufft/cufft.hpp"

namespace candelabra::cuda {
namespace {

template <typename T>
struct Scale {
  real_t<T> factor;
  __device__ T operator()(T x) const { return x * factor; }
};

template <typename T>
struct FromReal {
  __device__ T operator()(real_t<T> x) const { return T(x, 0); }
};
template <typename T>
struct RealPart {
  __device__ real_t<T> operator()(T x) const { return x.real(); }
};

// A view of a tensor with permuted dimensions. With `dense` it describes contiguous memory of those
// sizes.
struct Reordered {
  std::vector<int64_t> sizes, strides;
  cb_tensor tensor;

  Reordered(const cb_tensor& t, const std::vector<int>& order, void* dense = nullptr) : tensor(t) {
    for (int d : order) {
      sizes.push_back(t.sizes[d]);
      strides.push_back(t.strides[d]);
    }
    if (dense) {
      tensor.data = dense;
      int64_t step = 1;
      for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
    }
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
  }
  Reordered(const Reordered&) = delete;
  Reordered& operator=(const Reordered&) = delete;
};

// All dimensions in order, with those of `last` moved to the end.
std::vector<int> with_last(int ndim, const std::vector<int>& last) {
  std::vector<int> order;
  for (int d = 0; d < ndim; ++d)
    if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
  order.insert(order.end(), last.begin(), last.end());
  return order;
}

template <typename T>
void scale_by(const Call& call, const cb_tensor& out, double factor) {
  if (factor == 1) return;
  if constexpr (is_complex_v<T>)
    map<Types<T>, Types<T>>(call, Scale<T>{static_cast<real_t<T>>(factor)}, {&out}, {&out});
  else
    map<Types<T>, Types<T>>(call, Scale<T>{static_cast<T>(factor)}, {&out}, {&out});
}

template <typename T>
constexpr bool single = sizeof(real_t<T>) == 4;

size_t bytes_of(const cb_tensor& tensor) {
  return static_cast<size_t>(tensor.numel * itemsize(tensor.dtype));
}

template <typename T>
void complex_to_complex_of(const Call& call) {
  const arguments::FftC2c args(call);
  const cb_tensor &input = *args.self, &output = call.output();
  std::vector<int> dims;  // without dimensions of size 1, whose transform is the identity
  for (int64_t d : args.dim)
    if (output.sizes[d] != 1) dims.push_back(static_cast<int>(d));
  if (output.numel == 0) return;
  if (dims.empty()) {
    move_elements(call, output, input);
    return scale_by<T>(call, output, args.scale);
  }
  std::sort(dims.begin(), dims.end());
  const cb_tensor* from = &input;
  // cuFFT takes at most three dimensions in one call; the last dimensions go first.
  for (size_t end = dims.size(); end > 0;) {
    const size_t begin = end > 3 ? end - 3 : 0;
    const std::vector<int> group(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                                 dims.begin() + static_cast<std::ptrdiff_t>(end));
    const std::vector<int> order = with_last(output.ndim, group);
    const Reordered source(*from, order), target(output, order);
    FourierTransform plan{single<T> ? CUFFT_C2C : CUFFT_Z2Z, static_cast<int>(group.size()), {}, output.numel};
    for (size_t k = 0; k < group.size(); ++k) {
      plan.sizes[k] = output.sizes[group[k]];
      plan.batches /= plan.sizes[k];
    }
    const bool in_fits = is_contiguous(source.tensor), out_fits = is_contiguous(target.tensor);
    Workspace memory;
    if (!in_fits || !out_fits) memory = Workspace(call, bytes_of(output));
    void* read = from->data;
    if (!in_fits) {
      const Reordered dense(*from, order, memory.data());
      move_elements(call, dense.tensor, source.tensor);
      read = memory.data();
    }
    void* written = out_fits ? output.data : memory.data();
    transform(call, plan, read, written, args.forward);
    if (!out_fits) {
      const Reordered dense(output, order, memory.data());
      move_elements(call, target.tensor, dense.tensor);
    }
    from = &output;
    end = begin;
  }
  scale_by<T>(call, output, args.scale);
}

void complex_to_complex(Call& call) {
  dispatch<ComplexTypes>(call.output().dtype, [&]<typename T>() { complex_to_complex_of<T>(call); });
}

// Computes the first n / 2 + 1 of the n results.
template <typename T>
void real_to_complex_of(const Call& call, const arguments::FftR2c& args) {
  using C = ::cuda::std::complex<T>;
  const cb_tensor &input = *args.self, &output = call.output();
  const int dim = static_cast<int>(args.dim);
  if (output.numel == 0) return;
  const int64_t n = input.sizes[dim];
  if (n == 1) {
    map<Types<C>, Types<T>>(call, FromReal<C>{}, {&output}, {&input});
    return scale_by<C>(call, output, args.scale);
  }
  const std::vector<int> order = with_last(input.ndim, {dim});
  const Reordered source(input, order), target(output, order);
  const bool out_fits = is_contiguous(target.tensor);
  // Contiguous input is copied, too, if it is not aligned to pairs of real numbers: cuFFT may
  // require that.
  Workspace packed, spectrum;
  void* read = input.data;
  if (!is_contiguous(source.tensor) || reinterpret_cast<uintptr_t>(input.data) % sizeof(C) != 0) {
    packed = Workspace(call, bytes_of(input));
    const Reordered dense(input, order, packed.data());
    move_elements(call, dense.tensor, source.tensor);
    read = packed.data();
  }
  if (!out_fits) spectrum = Workspace(call, bytes_of(output));
  const FourierTransform plan{single<C> ? CUFFT_R2C : CUFFT_D2Z, 1, {n, 0, 0}, input.numel / n};
  transform(call, plan, read, out_fits ? output.data : spectrum.data(), true);
  if (!out_fits) {
    const Reordered dense(output, order, spectrum.data());
    move_elements(call, target.tensor, dense.tensor);
  }
  scale_by<C>(call, output, args.scale);
}

void real_to_complex(Call& call) {
  const arguments::FftR2c args(call);
  dispatch<FullFloatTypes>(args.self->dtype, [&]<typename T>() { real_to_complex_of<T>(call, args); });
}

// Clears the imaginary parts that the spectrum of a real signal cannot have: that of the first
// coefficient and, for an even length, that of the last.
template <typename C>
__global__ void __launch_bounds__(elementwise::threads)
    drop_imaginary(C* spectra, int64_t count, int64_t length, bool last_too) {
  for (int64_t i = first_index(); i < count; i += index_step()) {
    C* spectrum = spectra + i * length;
    spectrum[0] = C(spectrum[0].real(), 0);
    if (last_too) spectrum[length - 1] = C(spectrum[length - 1].real(), 0);
  }
}

// Computes the n real results from the first n / 2 + 1 coefficients.
template <typename T>
void complex_to_real_of(const Call& call) {
  using C = ::cuda::std::complex<T>;
  const arguments::FftC2r args(call);
  const cb_tensor &input = *args.self, &output = call.output();
  const int dim = static_cast<int>(args.dim);
  const int64_t n = args.n, length = n / 2 + 1;
  if (output.numel == 0) return;
  const std::vector<int> order = with_last(input.ndim, {dim});
  Reordered source(input, order);
  const Reordered target(output, order);
  // The other half of the coefficients is not read.
  source.sizes.back() = length;
  source.tensor.numel = input.numel / input.sizes[dim] * length;
  if (n == 1) {
    map<Types<T>, Types<C>>(call, RealPart<C>{}, {&target.tensor}, {&source.tensor});
    return scale_by<T>(call, output, args.scale);
  }
  // cuFFT clobbers its input.
  const Workspace packed(call, static_cast<size_t>(source.tensor.numel) * sizeof(C));
  std::vector<int> order_of_input(static_cast<size_t>(input.ndim));
  for (int d = 0; d < input.ndim; ++d) order_of_input[static_cast<size_t>(d)] = d;
  const Reordered dense(source.tensor, order_of_input, packed.data());
  move_elements(call, dense.tensor, source.tensor);
  const int64_t count = output.numel / n;
  launch(call, drop_imaginary<C>, grid_for(call, count, elementwise::threads), elementwise::threads, 0, packed.as<C>(),
         count, length, n % 2 == 0);
  const bool out_fits = is_contiguous(target.tensor);
  Workspace signal;
  if (!out_fits) signal = Workspace(call, bytes_of(output));
  const FourierTransform plan{single<C> ? CUFFT_C2R : CUFFT_Z2D, 1, {n, 0, 0}, count};
  transform(call, plan, packed.data(), out_fits ? output.data : signal.data(), false);
  if (!out_fits) {
    const Reordered result(output, order, signal.data());
    move_elements(call, target.tensor, result.tensor);
  }
  scale_by<T>(call, output, args.scale);
}

void complex_to_real(Call& call) {
  dispatch<FullFloatTypes>(call.output().dtype, [&]<typename T>() { complex_to_real_of<T>(call); });
}

}  // namespace

void register_fft(KernelTable& table) {
  table.add<complex_to_complex>("_fft_c2c");
  table.add<real_to_complex>("_fft_r2c");
  table.add<complex_to_real>("_fft_c2r");
}

}  // namespace candelabra::cuda
