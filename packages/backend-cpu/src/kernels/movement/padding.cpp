// _constant_pad_nd: a constant at both ends of any dimensions. _reflection_replication_pad and
// _reflection_replication_pad_backward: reflection, replication and circular padding of the last
// dimensions.
#include <bit>
#include <cstring>
#include <vector>

#include "candelabra/arguments/resampling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// At most three last dimensions are padded; those before them are collapsed into planes. In
// channels-last memory the channels are the `pixel` contiguous elements of a position.
struct Padding {
  int64_t planes = 1, pixel = 1;
  int64_t from[3] = {1, 1, 1}, to[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  enum class Mode { reflect, replicate, circular } mode;

  Padding(const cb_tensor& small, const cb_tensor& large, std::span<const int64_t> amounts, std::string_view name) {
    mode = name == "reflect" ? Mode::reflect : name == "replicate" ? Mode::replicate : Mode::circular;
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
    // Positions [first, last) of a result's row are a copy of the input.
    first = std::clamp<int64_t>(before[2], 0, to[2]);
    last = std::clamp<int64_t>(before[2] + from[2], first, to[2]);
    for (int64_t i = 0; i < first; ++i) ahead.push_back(source_index(2, i));
    for (int64_t i = last; i < to[2]; ++i) behind.push_back(source_index(2, i));
  }
  // The position of the input that position i of the result comes from. The padding is smaller than
  // the dimension, so that one reflection or wrap is enough.
  int64_t source_index(int d, int64_t i) const {
    const int64_t at = i - before[d], end = from[d];
    if (at >= 0 && at < end) return at;
    if (mode == Mode::reflect) return at < 0 ? -at : 2 * (end - 1) - at;
    if (mode == Mode::replicate) return at < 0 ? 0 : end - 1;
    return at < 0 ? at + end : at - end;
  }
  int64_t plane_in() const { return from[0] * from[1] * from[2] * pixel; }
  int64_t rows() const { return to[0] * to[1]; }
  // The offset in an input plane of the row that row `row` of the result comes from.
  int64_t source(int64_t row) const {
    return (source_index(0, row / to[1]) * from[1] + source_index(1, row % to[1])) * from[2] * pixel;
  }

  int64_t first, last;
  // Source indices of positions before `first`, and from `last` on
  std::vector<int64_t> ahead, behind;
};

void reflection_replication_pad(Call& call) {
  const arguments::ReflectionReplicationPad args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  const Padding pad(in, out, args.padding, args.mode);
  const int64_t pixel = pad.pixel, row = pad.to[2] * pixel, rows = pad.rows();
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    const U* source = data<U>(in);
    U* target = mutable_data<U>(out);
    std::vector<int64_t> sources(rows);
    for (int64_t r = 0; r < rows; ++r) sources[r] = pad.source(r);
    const int64_t plane = pad.plane_in();
    parallel_for(pad.planes * rows, grain_for(row), [&](int64_t begin, int64_t end) {
      int64_t r = begin % rows;
      const U* of_plane = source + begin / rows * plane;
      for (int64_t item = begin; item < end; ++item) {
        const U* from = of_plane + sources[r];
        U* to = target + item * row;
        if (++r == rows) r = 0, of_plane += plane;
        const auto edge = [&](int64_t x0, const std::vector<int64_t>& indices) {
          const int64_t count = static_cast<int64_t>(indices.size());
          if (pixel == 1)
            for (int64_t x = 0; x < count; ++x) to[x0 + x] = from[indices[x]];
          else
            for (int64_t x = 0; x < count; ++x) std::copy_n(from + indices[x] * pixel, pixel, to + (x0 + x) * pixel);
        };
        edge(0, pad.ahead);
        if (pad.last > pad.first)
          std::memcpy(to + pad.first * pixel, from + (pad.first - pad.before[2]) * pixel,
                      static_cast<size_t>((pad.last - pad.first) * pixel) * sizeof(U));
        edge(pad.last, pad.behind);
      }
    });
  });
}

// ---- _constant_pad_nd

// The dimensions of a result in memory order. Each begins `before` elements before the input's, or
// after it if `before` is negative. A dimension without padding is merged into the one before it if
// the input's strides allow that.
struct Frame {
  int ndim = 0;
  int64_t in_sizes[max_dims], in_strides[max_dims], out_sizes[max_dims], before[max_dims];
  int64_t base = 0;  // input offset of position 0 of the result; may be outside the input

  Frame(const cb_tensor& in, const cb_tensor& out, std::span<const int64_t> padding) {
    const bool channels_last = !is_contiguous(out);
    for (int d = 0; d < in.ndim; ++d) {
      const int from = d == 0 || !channels_last ? d : d + 1 < in.ndim ? d + 1 : 1;
      const size_t at = static_cast<size_t>(2 * (in.ndim - 1 - from));
      add(in.sizes[from], in.strides[from], out.sizes[from], at < padding.size() ? padding[at] : 0);
    }
    for (int d = 0; d < ndim; ++d) base -= before[d] * in_strides[d];
  }

 private:
  void add(int64_t in_size, int64_t stride, int64_t out_size, int64_t ahead) {
    const bool whole = ahead == 0 && in_size == out_size;
    if (ndim > 0 && whole && in_strides[ndim - 1] == in_size * stride) {
      --ndim;
      in_size *= in_sizes[ndim];
      ahead = before[ndim] * out_size;
      out_size *= out_sizes[ndim];
    }
    in_sizes[ndim] = in_size;
    in_strides[ndim] = stride;
    out_sizes[ndim] = out_size;
    before[ndim++] = ahead;
  }
};

template <typename T>
void copy_framed(const cb_tensor& in, const cb_tensor& out, const Frame& f, T value) {
  const int last = f.ndim - 1;
  const int64_t row = f.out_sizes[last], rows = out.numel / row, stride = f.in_strides[last];
  // Positions [first, end) of a row come from the input.
  const int64_t first = std::clamp<int64_t>(f.before[last], 0, row);
  const int64_t end = std::clamp<int64_t>(f.before[last] + f.in_sizes[last], first, row);
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  const MoveStores stores = row * size < long_row ? MoveStores::Ordinary : move_stores(out.numel * size);
  const T* from = data<T>(in);
  T* to = mutable_data<T>(out);
  parallel_for(rows, grain_for(row), [&](int64_t begin, int64_t stop) {
    int64_t index[max_dims], offset = f.base;
    for (int64_t d = last - 1, rest = begin; d >= 0; --d) {
      index[d] = rest % f.out_sizes[d];
      rest /= f.out_sizes[d];
      offset += index[d] * f.in_strides[d];
    }
    for (int64_t r = begin; r < stop; ++r) {
      bool inside = true;
      for (int d = 0; d < last; ++d)
        inside &= static_cast<uint64_t>(index[d] - f.before[d]) < static_cast<uint64_t>(f.in_sizes[d]);
      T* here = to + r * row;
      if (!inside) {
        std::fill_n(here, row, value);
      } else {
        for (int64_t x = 0; x < first; ++x) here[x] = value;
        const T* source = from + offset + first * stride;
        if (stores == MoveStores::NonTemporal && stride == 1)
          stream_unfenced(here + first, source, (end - first) * size);
        else
          move_run(here + first, 1, source, stride, end - first);
        for (int64_t x = end; x < row; ++x) here[x] = value;
      }
      for (int d = last - 1; d >= 0; --d) {
        offset += f.in_strides[d];
        if (++index[d] < f.out_sizes[d]) break;
        offset -= f.out_sizes[d] * f.in_strides[d];
        index[d] = 0;
      }
    }
    fence_after(stores);
  });
}

void constant_pad_nd(Call& call) {
  const arguments::ConstantPadNd args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  if (out.ndim == 0) return move_elements(out, in);
  const Frame f(in, out, args.padding);
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    using U = std::conditional_t<
        sizeof(T) == 1, uint8_t,
        std::conditional_t<
            sizeof(T) == 2, uint16_t,
            std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 8, uint64_t, Bits128>>>>;
    copy_framed<U>(in, out, f, std::bit_cast<U>(scalar_to<T>(*args.value)));
  });
}

template <typename T>
void accumulate_gradient(const Padding& pad, const cb_tensor& grad, const cb_tensor& out) {
  using C = compute_t<T>;
  const int64_t pixel = pad.pixel, row = pad.to[2] * pixel, rows = pad.rows(), plane = pad.plane_in();
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
        const auto edge = [&](int64_t x0, const std::vector<int64_t>& indices) {
          for (size_t x = 0; x < indices.size(); ++x) {
            C* sum = to + indices[x] * pixel;
            const C* each = from + (x0 + static_cast<int64_t>(x)) * pixel;
            for (int64_t c = 0; c < pixel; ++c) sum[c] += each[c];
          }
        };
        edge(0, pad.ahead);
        C* inner = to + (pad.first - pad.before[2]) * pixel;
        const C* middle = from + pad.first * pixel;
        const int64_t n = (pad.last - pad.first) * pixel;
        for (int64_t i = 0; i < n; ++i) inner[i] += middle[i];
        edge(pad.last, pad.behind);
      }
      if constexpr (is_half_v<T>) from_float(whole, mutable_data<T>(out) + item * plane, plane);
    }
  });
}

void reflection_replication_pad_backward(Call& call) {
  const arguments::ReflectionReplicationPadBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (out.numel == 0) return;
  const Padding pad(out, grad, args.padding, args.mode);
  dispatch_among(out.dtype, FloatTypes{} + ComplexTypes{},
                 [&]<typename T>() { accumulate_gradient<T>(pad, grad, out); });
}

}  // namespace

void register_padding(KernelTable& table) {
  table.add<constant_pad_nd>("_constant_pad_nd");
  table.add<reflection_replication_pad>("_reflection_replication_pad");
  table.add<reflection_replication_pad_backward>("_reflection_replication_pad_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
