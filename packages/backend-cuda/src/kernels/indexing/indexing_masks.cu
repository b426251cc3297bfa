// masked_fill, masked_scatter, masked_select, nonzero.
#include <algorithm>
#include <array>
#include <cstring>
#include <cub/device/device_scan.cuh>
#include <vector>

#include "candelabra/arguments/indexing.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"

namespace candelabra::cuda {
namespace {

// A tensor expanded to the given sizes.
struct Expanded {
  int64_t strides[max_dims];
  cb_tensor tensor;

  Expanded(const cb_tensor& original, int ndim, const int64_t* sizes) : tensor(original) {
    tensor.ndim = ndim;
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.numel = 1;
    const int missing = ndim - original.ndim;
    for (int d = 0; d < ndim; ++d) {
      const bool own = d >= missing && !is_number(original) && original.sizes[d - missing] == sizes[d];
      strides[d] = own ? original.strides[d - missing] : 0;
      tensor.numel *= sizes[d];
    }
  }
  Expanded(const Expanded&) = delete;
  Expanded& operator=(const Expanded&) = delete;
};

template <typename U>
struct FillWith {
  U value;
  __device__ U operator()(U x, bool chosen) const { return chosen ? value : x; }
};
struct Choose {
  template <typename U>
  __device__ U operator()(U x, bool chosen, U value) const {
    return chosen ? value : x;
  }
};

void masked_fill(Call& call) {
  const arguments::MaskedFill args(call);
  const cb_tensor &out = call.output(), &value = *args.value;
  const Expanded self(*args.self, out.ndim, out.sizes), mask(*args.mask, out.ndim, out.sizes);
  if (is_number(value)) {
    const ElementBits bits = bits_of_number(value, out.dtype);
    return dispatch_size(itemsize(out.dtype), [&]<typename U>() {
      map<Types<U>, Types<U, bool>>(call, FillWith<U>{bits.as<U>()}, {&out}, {&self.tensor, &mask.tensor});
    });
  }
  const Expanded values(value, out.ndim, out.sizes);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    map<Types<U>, Types<U, bool, U>>(call, Choose{}, {&out}, {&self.tensor, &mask.tensor, &values.tensor});
  });
}

// ---- selected elements, in row-major order

constexpr int threads = 256, warps = threads / 32;
constexpr int64_t block_elements = 2048;

// An element is selected if any bit under the mask `bits` is set. The mask leaves out the sign bits
// of floating-point numbers, so that -0.0 is not selected.
template <typename U>
__device__ __forceinline__ bool selected(const U& element, const U& bits) {
  if constexpr (sizeof(U) == 16)
    return ((element.low & bits.low) | (element.high & bits.high)) != 0;
  else
    return (element & bits) != 0;
}

template <typename U>
__global__ void __launch_bounds__(threads)
    count_kernel(int64_t* counts, const U* elements, U bits, const __grid_constant__ Indexer<2> indexer) {
  const int64_t first = blockIdx.x * block_elements;
  int count = 0;
  for (int64_t i = first + threadIdx.x; i < first + block_elements; i += threads) {
    bool chosen = false;
    if (i < indexer.count) {
      uint32_t at[2];
      indexer.at_rolled(static_cast<uint32_t>(i), at);
      chosen = selected(elements[at[0]], bits);
    }
    count += __syncthreads_count(chosen);
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// Calls write(index of the element, offset in the other operand, number of elements selected
// before) for each selected element.
template <typename U, typename Write>
__global__ void __launch_bounds__(threads)
    write_kernel(const int64_t* before, const U* elements, U bits, int64_t first_number, int64_t first_other,
                 const __grid_constant__ Write write, const __grid_constant__ Indexer<2> indexer) {
  __shared__ int in_warp[warps];
  const int64_t first = blockIdx.x * block_elements;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t rank = before[blockIdx.x];
  for (int64_t i = first + threadIdx.x; i < first + block_elements; i += threads) {
    bool chosen = false;
    uint32_t at[2] = {0, 0};
    if (i < indexer.count) {
      indexer.at_rolled(static_cast<uint32_t>(i), at);
      chosen = selected(elements[at[0]], bits);
    }
    const unsigned ballot = __ballot_sync(0xffffffffu, chosen);
    if (lane == 0) in_warp[warp] = __popc(ballot);
    __syncthreads();
    int ahead = __popc(ballot & ((1u << lane) - 1)), all = 0;
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) ahead += in_warp[w];
      all += in_warp[w];
    }
    if (chosen) write(first_number + i, first_other + at[1], rank + ahead);
    rank += all;
    __syncthreads();
  }
}

struct Part {
  Geometry<2> piece;
  std::array<int64_t, 2> offsets;
  int64_t first, blocks;
};

// Counts the selected elements of a tensor, then calls a function object for each.
class Selection {
 public:
  // `other` has the same sizes; write() passes offsets in it.
  Selection(const Call& call, const cb_tensor& elements, const cb_tensor& other) : call_(call), elements_(elements) {
    std::memset(bits_.bytes, 0xff, sizeof bits_.bytes);
    const auto part = static_cast<size_t>(itemsize(elements.dtype)) / (is_complex_dtype(elements.dtype) ? 2 : 1);
    if (is_floating_dtype(elements.dtype) || is_complex_dtype(elements.dtype))
      for (size_t last = part - 1; last < sizeof bits_.bytes; last += part) bits_.bytes[last] = 0x7f;
    int64_t first = 0;
    for_each_piece(
        geometry<2>({&elements, &other}, Order::RowMajor),
        [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
          const int64_t blocks = divide_up(piece.numel, block_elements);
          parts_.push_back({piece, offsets, first, blocks});
          first += piece.numel;
          blocks_ += blocks;
        },
        Pieces::InOrder);
    count();
  }

  // The number of selected elements, in device memory.
  const int64_t* total() const { return before_.as<int64_t>() + blocks_; }

  template <typename Write>
  void write(const Write& write) const {
    each([&]<typename U>(const Part& part, int64_t block) {
      launch(call_, write_kernel<U, Write>, static_cast<unsigned>(part.blocks), threads, 0,
             before_.as<int64_t>() + block, data<U>(elements_) + part.offsets[0], bits_.as<U>(), part.first,
             part.offsets[1], write, Indexer<2>(part.piece));
    });
  }
  // The same for a mask, whose elements are bytes.
  template <typename Write>
  void write_of_mask(const Write& write) const {
    int64_t block = 0;
    for (const Part& part : parts_) {
      launch(call_, write_kernel<uint8_t, Write>, static_cast<unsigned>(part.blocks), threads, 0,
             before_.as<int64_t>() + block, data<uint8_t>(elements_) + part.offsets[0], uint8_t{0xff}, part.first,
             part.offsets[1], write, Indexer<2>(part.piece));
      block += part.blocks;
    }
  }

 private:
  template <typename F>
  void each(F&& f) const {
    dispatch_size(itemsize(elements_.dtype), [&]<typename U>() {
      int64_t block = 0;
      for (const Part& part : parts_) {
        f.template operator()<U>(part, block);
        block += part.blocks;
      }
    });
  }
  void count() {
    before_ = Workspace(call_, static_cast<size_t>(blocks_ + 1) * sizeof(int64_t));
    auto* counts = before_.as<int64_t>();
    fill_bytes(call_, counts + blocks_, 0, sizeof(int64_t));
    if (blocks_ == 0) return;
    each([&]<typename U>(const Part& part, int64_t block) {
      launch(call_, count_kernel<U>, static_cast<unsigned>(part.blocks), threads, 0, counts + block,
             data<U>(elements_) + part.offsets[0], bits_.as<U>(), Indexer<2>(part.piece));
    });
    size_t bytes = 0;
    const char* doing = call_.raw()->operator_name;
    check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, counts, blocks_ + 1, call_.stream()), doing);
    const Workspace room(call_, bytes);
    check(cub::DeviceScan::ExclusiveSum(room.data(), bytes, counts, counts, blocks_ + 1, call_.stream()), doing);
  }

  const Call& call_;
  const cb_tensor& elements_;
  ElementBits bits_;
  std::vector<Part> parts_;
  int64_t blocks_ = 0;
  Workspace before_;
};

template <typename U>
struct WriteValue {
  U* out;
  const U* self;
  __device__ void operator()(int64_t, int64_t offset, int64_t rank) const { out[rank] = self[offset]; }
};

void masked_select(Call& call) {
  const arguments::MaskedSelect args(call);
  const cb_tensor &self = *args.self, &mask = *args.mask;
  const int ndim = std::max(self.ndim, mask.ndim);
  int64_t sizes[max_dims];
  for (int d = 0; d < ndim; ++d) {
    const int a = d - (ndim - self.ndim), b = d - (ndim - mask.ndim);
    const int64_t size = a >= 0 ? self.sizes[a] : 1;
    sizes[d] = size == 1 && b >= 0 ? mask.sizes[b] : size;
  }
  const Expanded values(self, ndim, sizes), chosen(mask, ndim, sizes);
  const Selection selection(call, chosen.tensor, values.tensor);
  const auto count = read_back<int64_t>(call, selection.total());
  const cb_tensor& out = call.allocate_output(0, std::span(&count, 1));
  if (count == 0) return;
  dispatch_size(itemsize(self.dtype), [&]<typename U>() {
    selection.write_of_mask(WriteValue<U>{static_cast<U*>(out.data), data<U>(self)});
  });
}

template <typename U>
struct WriteFromSource {
  U* out;
  const U* source;
  int64_t step, numel;
  FaultSink sink;
  __device__ void operator()(int64_t, int64_t offset, int64_t rank) const {
    if (rank < numel)
      out[offset] = source[rank * step];
    else
      sink.report(FaultKind::Custom, rank, 0, numel);
  }
};

void masked_scatter(Call& call) {
  const arguments::MaskedScatter args(call);
  const cb_tensor &source = *args.source, &out = call.output();
  const Expanded self(*args.self, out.ndim, out.sizes), mask(*args.mask, out.ndim, out.sizes);
  initialize_from(call, out, self.tensor);
  if (out.numel == 0) return;
  const Geometry<1> sequence = geometry<1>({&source}, Order::RowMajor);
  const void* from = source.data;
  Workspace copy;
  if (!sequence.flat()) {  // a source without a constant stride is copied
    int64_t strides[max_dims], step = 1;
    for (int d = source.ndim - 1; d >= 0; --d) strides[d] = step, step *= source.sizes[d];
    copy = Workspace(call, static_cast<size_t>(source.numel * itemsize(source.dtype)));
    cb_tensor dense = source;
    dense.data = copy.data();
    dense.strides = strides;
    move_elements(call, dense, source);
    from = copy.data();
  }
  const Selection selection(call, mask.tensor, out);
  const FaultSink sink = fault_sink(call, "masked_scatter: the mask selects more elements than source has");
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    selection.write_of_mask(WriteFromSource<U>{static_cast<U*>(out.data), static_cast<const U*>(from),
                                               sequence.flat() ? sequence.strides[0][0] : 1, source.numel, sink});
  });
}

struct WriteIndex {
  int64_t* out;
  int ndim;
  int64_t sizes[max_dims];
  __device__ void operator()(int64_t number, int64_t, int64_t rank) const {
    for (int d = ndim - 1; d >= 0; --d) {
      const int64_t rest = number / sizes[d];
      out[rank * ndim + d] = number - rest * sizes[d];
      number = rest;
    }
  }
};

void nonzero(Call& call) {
  const cb_tensor& self = *arguments::Nonzero(call).self;
  const Selection selection(call, self, self);
  const int64_t shape[2] = {read_back<int64_t>(call, selection.total()), self.ndim};
  const cb_tensor& out = call.allocate_output(0, shape);
  if (out.numel == 0) return;
  WriteIndex write{static_cast<int64_t*>(out.data), self.ndim, {}};
  std::copy_n(self.sizes, self.ndim, write.sizes);
  selection.write(write);
}

}  // namespace

void register_indexing_masks(KernelTable& table) {
  table.add<masked_fill>("masked_fill");
  table.add<masked_scatter>("masked_scatter");
  table.add<masked_select>("masked_select");
  table.add<nonzero>("nonzero");
}

}  // namespace candelabra::cuda
