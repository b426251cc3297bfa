// From a scalar formula to a kernel, over operands of any strides. A formula is a function object with a __device__ operator(); one
// with state is copied into the kernel's arguments. It sees values of the type computed in (float for the half precisions).
//
//   map1<T>(call, Neg{});                                      one operand, result of the same dtype
//   map<Types<bool>, Types<T, T>>(call, Less{}, {&out}, {&a, &b});     any dtypes
//   map<Types<T, T>, Types<T>>(call, op, {&o0, &o1}, {&a});            several results: op(in..., &out0, &out1)
//
// Each formula becomes two kernels: one that moves 16 bytes at a time, for operands whose innermost dimension has no gaps (others may
// be broadcast along it), and one for the rest. Elements of 8 bytes and more have only the latter. A formula that is more than a few
// instructions says `static constexpr bool heavy = true` or is wrapped as Heavy<Formula>: it is then compiled fewer times over.
#pragma once

#include <array>
#include <cstring>

#include "iterate.hpp"
#include "launch.hpp"

namespace candelabra::cuda {

// A formula of many instructions.
template <typename Op>
struct Heavy : Op {
  static constexpr bool heavy = true;
};

namespace elementwise {

constexpr int threads = 256;

template <typename Op>
constexpr bool is_heavy = requires { requires Op::heavy; };

template <int Bytes>
struct PackedType;
template <>
struct PackedType<1> {
  using type = uint8_t;
};
template <>
struct PackedType<2> {
  using type = uint16_t;
};
template <>
struct PackedType<4> {
  using type = uint32_t;
};
template <>
struct PackedType<8> {
  using type = uint2;
};
template <>
struct PackedType<16> {
  using type = uint4;
};

// `Count` elements that lie side by side and are aligned to their size together, in one access.
template <typename T, int Count>
__device__ __forceinline__ void load_packed(const memory_t<T>* from, compute_t<T>* values) {
  using Word = typename PackedType<sizeof(memory_t<T>) * Count>::type;
  const Word word = *reinterpret_cast<const Word*>(from);
  memory_t<T> raw[Count];
  memcpy(raw, &word, sizeof word);
#pragma unroll
  for (int j = 0; j < Count; ++j) values[j] = loaded<T>(raw[j]);
}
template <typename T, int Count>
__device__ __forceinline__ void store_packed(memory_t<T>* to, const compute_t<T>* values) {
  using Word = typename PackedType<sizeof(memory_t<T>) * Count>::type;
  memory_t<T> raw[Count];
#pragma unroll
  for (int j = 0; j < Count; ++j) raw[j] = stored<T>(values[j]);
  Word word;
  memcpy(&word, raw, sizeof word);
  *reinterpret_cast<Word*>(to) = word;
}

// Where a number stands for a tensor, its value; else memory.
template <typename T>
struct Input {
  const memory_t<T>* data;  // null: value
  compute_t<T> value;
};
template <typename T>
struct Output {
  memory_t<T>* data;
};

// One value of each type, found by number; an aggregate, as kernels' arguments should be.
template <size_t I, typename T>
struct Leaf {
  T value;
};
template <typename Numbers, typename... Ts>
struct NumberedPack;
template <size_t... I, typename... Ts>
struct NumberedPack<std::index_sequence<I...>, Ts...> : Leaf<I, Ts>... {};
template <typename... Ts>
using Pack = NumberedPack<std::index_sequence_for<Ts...>, Ts...>;
template <size_t I, typename T>
CANDELABRA_HOST_DEVICE T& get(Leaf<I, T>& leaf) {
  return leaf.value;
}
template <size_t I, typename T>
CANDELABRA_HOST_DEVICE const T& get(const Leaf<I, T>& leaf) {
  return leaf.value;
}

// The values of one operand that a thread has in registers.
template <typename T, int Count>
struct Lanes {
  compute_t<T> values[Count];
};

template <typename T, int Vec>
__device__ __forceinline__ void load_unit(const Input<T>& in, uint32_t offset, bool broadcast, compute_t<T>* values) {
  if (in.data == nullptr) {
#pragma unroll
    for (int j = 0; j < Vec; ++j) values[j] = in.value;
  } else if (Vec == 1 || broadcast) {
    const compute_t<T> value = loaded<T>(in.data[offset]);
#pragma unroll
    for (int j = 0; j < Vec; ++j) values[j] = value;
  } else {
    load_packed<T, Vec>(in.data + offset, values);
  }
}
template <typename T, int Vec>
__device__ __forceinline__ void store_unit(const Output<T>& out, uint32_t offset, const compute_t<T>* values) {
  if constexpr (Vec == 1)
    out.data[offset] = stored<T>(values[0]);
  else
    store_packed<T, Vec>(out.data + offset, values);
}

template <typename Op, typename OutList, typename InList>
struct Map;

template <typename Op, typename... Outs, typename... Ins>
struct Map<Op, Types<Outs...>, Types<Ins...>> {
  static constexpr int outs = sizeof...(Outs), ins = sizeof...(Ins), operands = outs + ins;
  static constexpr int widest = static_cast<int>(std::max({sizeof(memory_t<Outs>)..., sizeof(memory_t<Ins>)...}));
  // Four accesses of 8 bytes by each thread are as good as one of 16.
  static constexpr int vec = widest >= 8 ? 1 : 16 / widest;
  // How many units a thread takes: enough to have its accesses overlap.
  static constexpr int unroll_packed = !is_heavy<Op> && ins <= 1 ? 2 : 1;
  static constexpr int unroll_single = is_heavy<Op> ? 1 : widest >= 8 ? 4 : 2;

  using Inputs = Pack<Input<Ins>...>;
  using Outputs = Pack<Output<Outs>...>;

  struct Arguments {
    Op op;
    Indexer<operands> indexer;  // of units of Vec elements
    Outputs out;
    Inputs in;
  };

  template <int Vec, int Unroll, size_t... O, size_t... I>
  __device__ static __forceinline__ void run(const Arguments& a, std::index_sequence<O...>, std::index_sequence<I...>) {
    Pack<Lanes<Ins, Vec * Unroll>...> lanes;
    uint32_t out_offsets[Unroll][outs];
    const uint32_t first = blockIdx.x * (threads * Unroll) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const uint32_t i = first + u * threads;
      if (i < a.indexer.count) {
        uint32_t offsets[operands];
        a.indexer.at(i, offsets);
        ((out_offsets[u][O] = offsets[O]), ...);
        (load_unit<Ins, Vec>(get<I>(a.in), offsets[outs + I], a.indexer.strides[0][outs + I] == 0,
                             get<I>(lanes).values + u * Vec),
         ...);
      }
    }
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const uint32_t i = first + u * threads;
      if (i < a.indexer.count) {
        Pack<Lanes<Outs, Vec>...> results;
#pragma unroll
        for (int j = 0; j < Vec; ++j) {
          if constexpr (outs == 1)
            get<0>(results).values[j] = a.op(get<I>(lanes).values[u * Vec + j]...);
          else
            a.op(get<I>(lanes).values[u * Vec + j]..., &get<O>(results).values[j]...);
        }
        (store_unit<Outs, Vec>(get<O>(a.out), out_offsets[u][O], get<O>(results).values), ...);
      }
    }
  }
};

template <typename M, int Vec, int Unroll>
__global__ void __launch_bounds__(threads) map_kernel(const __grid_constant__ typename M::Arguments arguments) {
  M::template run<Vec, Unroll>(arguments, std::make_index_sequence<M::outs>{}, std::make_index_sequence<M::ins>{});
}

// Whether every operand of the piece can be read `vec` elements at a time along dimension 0, and is aligned for that.
template <int N>
bool moves_packed(const Geometry<N>& piece, int outs, int vec, const uintptr_t* addresses, const int* sizes) {
  if (piece.sizes[0] % vec != 0) return false;
  for (int k = 0; k < N; ++k) {
    const int64_t stride = piece.strides[k][0];
    if (stride == 0 && k >= outs) continue;
    if (stride != 1) return false;
    if (addresses[k] % static_cast<size_t>(vec * sizes[k]) != 0) return false;
    for (int d = 1; d < piece.ndim; ++d)
      if (piece.strides[k][d] % vec != 0) return false;
  }
  return true;
}

template <typename M, int Vec, int Unroll>
void launch_piece(const Call& call, const Geometry<M::operands>& piece, typename M::Arguments& arguments) {
  Geometry<M::operands> units = piece;
  if constexpr (Vec > 1) {
    units.sizes[0] /= Vec;
    units.numel /= Vec;
    for (int k = 0; k < M::operands; ++k) units.strides[k][0] *= Vec;
  }
  arguments.indexer = Indexer<M::operands>(units);
  const auto blocks = static_cast<unsigned>(divide_up(units.numel, threads * Unroll));
  launch(call, map_kernel<M, Vec, Unroll>, blocks, threads, 0, arguments);
}

template <typename T>
Input<T> input_at(const cb_tensor& tensor, int64_t offset) {
  if (is_number(tensor)) return {nullptr, number_of<compute_t<T>>(tensor)};
  return {static_cast<const memory_t<T>*>(tensor.data) + offset, compute_t<T>{}};
}

inline void check_alignment(const cb_tensor& tensor, size_t size) {
  if (!is_number(tensor) && reinterpret_cast<uintptr_t>(tensor.data) % size != 0)
    throw failure(CB_RUNTIME_ERROR, "the memory of a tensor is not aligned to its elements of %zu bytes; clone() it", size);
}

template <typename M, typename Op, typename... Outs, typename... Ins, size_t... O, size_t... I>
void map_pieces(const Call& call, const Op& op, const std::array<const cb_tensor*, M::operands>& tensors, Types<Outs...>,
                Types<Ins...>, std::index_sequence<O...>, std::index_sequence<I...>) {
  constexpr size_t outs = M::outs;
  const Geometry<M::operands> g = geometry<M::operands>(tensors);
  if (g.numel == 0) return;
  constexpr std::array<int, M::operands> sizes{static_cast<int>(sizeof(memory_t<Outs>))..., static_cast<int>(sizeof(memory_t<Ins>))...};
  for (size_t k = 0; k < tensors.size(); ++k) check_alignment(*tensors[k], static_cast<size_t>(sizes[k]));
  for_each_piece(g, [&](const Geometry<M::operands>& piece, const std::array<int64_t, M::operands>& offsets) {
    typename M::Arguments arguments{
        op,
        {},
        {Leaf<O, Output<Outs>>{{static_cast<memory_t<Outs>*>(tensors[O]->data) + offsets[O]}}...},
        {Leaf<I, Input<Ins>>{input_at<Ins>(*tensors[outs + I], offsets[outs + I])}...}};
    if constexpr (M::vec > 1) {
      std::array<uintptr_t, M::operands> addresses{};
      for (size_t k = 0; k < tensors.size(); ++k)
        addresses[k] = is_number(*tensors[k]) ? 0 : reinterpret_cast<uintptr_t>(tensors[k]->data) + static_cast<uintptr_t>(offsets[k] * sizes[k]);
      // The elements that do not fill a packet, where there are many of those that do.
      if (piece.ndim == 1 && piece.sizes[0] % M::vec != 0 && piece.sizes[0] >= 65536) {
        Geometry<M::operands> head = piece;
        head.sizes[0] = head.numel = piece.sizes[0] - piece.sizes[0] % M::vec;
        if (moves_packed(head, M::outs, M::vec, addresses.data(), sizes.data())) {
          launch_piece<M, M::vec, M::unroll_packed>(call, head, arguments);
          Geometry<M::operands> tail = piece;
          tail.sizes[0] = tail.numel = piece.sizes[0] - head.numel;
          ((get<O>(arguments.out).data += head.numel), ...);
          ((get<I>(arguments.in).data +=
            get<I>(arguments.in).data ? head.numel * piece.strides[outs + I][0] : 0),
           ...);
          return launch_piece<M, 1, M::unroll_single>(call, tail, arguments);
        }
      }
      if (moves_packed(piece, M::outs, M::vec, addresses.data(), sizes.data())) return launch_piece<M, M::vec, M::unroll_packed>(call, piece, arguments);
    }
    launch_piece<M, 1, M::unroll_single>(call, piece, arguments);
  });
}

}  // namespace elementwise

// Runs a formula over operands of the sizes of the first output.
template <typename OutList, typename InList, typename Op>
void map(const Call& call, const Op& op, std::array<const cb_tensor*, elementwise::Map<Op, OutList, InList>::outs> outs,
         std::array<const cb_tensor*, elementwise::Map<Op, OutList, InList>::ins> ins) {
  using M = elementwise::Map<Op, OutList, InList>;
  std::array<const cb_tensor*, M::operands> tensors{};
  std::copy(outs.begin(), outs.end(), tensors.begin());
  std::copy(ins.begin(), ins.end(), tensors.begin() + M::outs);
  elementwise::map_pieces<M>(call, op, tensors, OutList{}, InList{}, std::make_index_sequence<M::outs>{},
                             std::make_index_sequence<M::ins>{});
}

// A formula with operands and result of the same element type T.
template <typename T, typename Op>
void map1(Call& call, const Op& op, int first = 0) {
  map<Types<T>, Types<T>>(call, op, {&call.output()}, {&call.tensor(first)});
}
template <typename T, typename Op>
void map2(Call& call, const Op& op, int first = 0, int second = 1) {
  map<Types<T>, Types<T, T>>(call, op, {&call.output()}, {&call.tensor(first), &call.tensor(second)});
}
template <typename T, typename Op>
void map3(Call& call, const Op& op) {
  map<Types<T>, Types<T, T, T>>(call, op, {&call.output()}, {&call.tensor(0), &call.tensor(1), &call.tensor(2)});
}

// Kernels of stateless formulas over a list of dtypes.
template <typename Op, typename List>
void unary(Call& call) {
  dispatch<List>(call.output().dtype, [&]<typename T>() { map1<T>(call, Op{}); });
}
template <typename Op, typename List>
void binary(Call& call) {
  dispatch<List>(call.output().dtype, [&]<typename T>() { map2<T>(call, Op{}); });
}
// Results are bool, whatever the operands.
template <typename Op, typename List>
void unary_bool(Call& call) {
  dispatch<List>(call.tensor(0).dtype,
                 [&]<typename T>() { map<Types<bool>, Types<T>>(call, Op{}, {&call.output()}, {&call.tensor(0)}); });
}
template <typename Op, typename List>
void binary_bool(Call& call) {
  dispatch<List>(call.tensor(0).dtype, [&]<typename T>() {
    map<Types<bool>, Types<T, T>>(call, Op{}, {&call.output()}, {&call.tensor(0), &call.tensor(1)});
  });
}

// ---- results that follow from the position alone

namespace elementwise {

template <typename T, typename F>
__global__ void __launch_bounds__(threads)
    generate_kernel(const F value, memory_t<T>* out, const __grid_constant__ Indexer<1> indexer, int64_t first) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t offsets[1];
  indexer.at(i, offsets);
  out[offsets[0]] = stored<T>(static_cast<compute_t<T>>(value(first + i)));
}

}  // namespace elementwise

// Element i in row-major order becomes value(i): a function object with a __device__ operator()(int64_t).
template <typename T, typename F>
void generate(Call& call, const cb_tensor& out, const F& value) {
  const Geometry<1> g = geometry<1>({&out}, Order::RowMajor);
  int64_t first = 0;
  for_each_piece(g, [&](const Geometry<1>& piece, const std::array<int64_t, 1>& offsets) {
    launch(call, elementwise::generate_kernel<T, F>, static_cast<unsigned>(divide_up(piece.numel, elementwise::threads)),
           elementwise::threads, 0, value, static_cast<memory_t<T>*>(out.data) + offsets[0], Indexer<1>(piece), first);
    first += piece.numel;
  }, Pieces::InOrder);
}

}  // namespace candelabra::cuda
