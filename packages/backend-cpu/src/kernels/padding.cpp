// pad_edges and pad_edges_backward: mirrored, repeated or circular positions at both ends of the last dimensions. Each dimension
// has a list of the positions that those of the result come from.
#include <cstring>
#include <vector>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The last dimensions, at most three of them are padded; what is before them are planes. Where the memory is channels-last, the
// channels are the innermost `pixel` elements of a position.
struct Padding {
  int64_t planes = 1, pixel = 1;
  int64_t from[3] = {1, 1, 1}, to[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  std::vector<int64_t> places[3];  // of each position of the result

  Padding(Call& call, const cb_tensor& small, const cb_tensor& large, int list, int mode_at) {
    const auto amounts = call.ints(list);
    const std::string_view mode = call.string(mode_at);
    const int dims = static_cast<int>(amounts.size() / 2), outer = small.ndim - dims;
    for (int d = 0; d < outer; ++d) planes *= small.sizes[d];
    if (!is_contiguous(small) || !is_contiguous(large)) {
      pixel = small.sizes[1];
      planes = small.sizes[0];
    }
    for (int d = 0; d < dims; ++d) {
      const int at = 3 - dims + d;
      from[at] = small.sizes[outer + d];
      to[at] = large.sizes[outer + d];
      before[at] = amounts[2 * (dims - 1 - d)];
    }
    for (int d = 0; d < 3; ++d) {
      places[d].resize(to[d]);
      const int64_t last = from[d] - 1;
      for (int64_t i = 0; i < to[d]; ++i) {
        int64_t place = i - before[d];
        if (mode == "reflect")
          place = last - std::abs(last - std::abs(place));
        else if (mode == "replicate")
          place = std::clamp<int64_t>(place, 0, last);
        else
          place = ((place % from[d]) + from[d]) % from[d];
        places[d][i] = place;
      }
    }
    // Positions of the result between which the input lies as it is.
    first = std::clamp<int64_t>(before[2], 0, to[2]);
    last = std::clamp<int64_t>(before[2] + from[2], first, to[2]);
  }
  int64_t plane_in() const { return from[0] * from[1] * from[2] * pixel; }
  int64_t rows() const { return to[0] * to[1]; }
  // Offset in a plane of the input of the row that row `row` of the result comes from.
  int64_t source(int64_t row) const { return (places[0][row / to[1]] * from[1] + places[1][row % to[1]]) * from[2] * pixel; }

  int64_t first, last;
};

void pad_edges(Call& call) {
  const cb_tensor &in = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  const Padding pad(call, in, out, 1, 2);
  const int64_t pixel = pad.pixel, row = pad.to[2] * pixel, rows = pad.rows();
  const int64_t* places = pad.places[2].data();
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    const U* source = data<U>(in);
    U* target = mutable_data<U>(out);
    parallel_for(pad.planes * rows, grain_for(row), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const U* from = source + item / rows * pad.plane_in() + pad.source(item % rows);
        U* to = target + item * row;
        const auto edge = [&](int64_t x0, int64_t x1) {
          for (int64_t x = x0; x < x1; ++x) std::copy_n(from + places[x] * pixel, pixel, to + x * pixel);
        };
        edge(0, pad.first);
        if (pad.last > pad.first)
          std::memcpy(to + pad.first * pixel, from + (pad.first - pad.before[2]) * pixel,
                      static_cast<size_t>((pad.last - pad.first) * pixel) * sizeof(U));
        edge(pad.last, pad.to[2]);
      }
    });
  });
}

template <typename T>
void add_back(const Padding& pad, const cb_tensor& grad, const cb_tensor& out) {
  using C = compute_t<T>;
  const int64_t pixel = pad.pixel, row = pad.to[2] * pixel, rows = pad.rows(), plane = pad.plane_in();
  const int64_t* places = pad.places[2].data();
  parallel_for(pad.planes, grain_for(rows * row), [&](int64_t begin, int64_t end) {
    Scratch<C> sums(is_half_v<T> ? plane : 0), wide(is_half_v<T> ? row : 0);
    for (int64_t item = begin; item < end; ++item) {
      C* whole;
      if constexpr (is_half_v<T>)
        whole = sums.data();
      else
        whole = mutable_data<T>(out) + item * plane;
      std::fill_n(whole, plane, C(0));
      for (int64_t r = 0; r < rows; ++r) {
        const T* narrow = data<T>(grad) + (item * rows + r) * row;
        const C* from;
        if constexpr (is_half_v<T>) {
          to_float(narrow, wide.data(), row);
          from = wide.data();
        } else {
          from = narrow;
        }
        C* to = whole + pad.source(r);
        const auto edge = [&](int64_t x0, int64_t x1) {
          for (int64_t x = x0; x < x1; ++x)
            for (int64_t c = 0; c < pixel; ++c) to[places[x] * pixel + c] += from[x * pixel + c];
        };
        edge(0, pad.first);
        C* inner = to + (pad.first - pad.before[2]) * pixel;
        const C* middle = from + pad.first * pixel;
        const int64_t n = (pad.last - pad.first) * pixel;
        for (int64_t i = 0; i < n; ++i) inner[i] += middle[i];
        edge(pad.last, pad.to[2]);
      }
      if constexpr (is_half_v<T>) from_float(whole, mutable_data<T>(out) + item * plane, plane);
    }
  });
}

void pad_edges_backward(Call& call) {
  const cb_tensor &grad = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  const Padding pad(call, out, grad, 2, 3);
  dispatch_among(out.dtype, FloatTypes{} + ComplexTypes{}, [&]<typename T>() { add_back<T>(pad, grad, out); });
}

}  // namespace

void register_padding(KernelTable& table) {
  table.add<pad_edges>("pad_edges");
  table.add<pad_edges_backward>("pad_edges_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
