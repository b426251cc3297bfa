// Makes a kernel of a scalar formula, over operands of any strides. A formula is a function object
// with a __device__ operator(); its state is copied into the kernel's arguments. It gets values of
// type compute_t (float for the half precisions).
//
//   map1<T>(call, Neg{});                                    one operand, result of the same dtype
//   map<Types<bool>, Types<T, T>>(call, Less{}, {&out}, {&a, &b});   any dtypes
//   map<Types<T, T>, Types<T>>(call, op, {&o0, &o1}, {&a});          two results: op(in..., &out0, &out1)
//
// Each formula becomes two kernels. The packed kernel accesses 16 bytes at a time; along the
// innermost dimension its operands have stride 1 or 0. The other kernel takes any strides; elements
// of 8 bytes and more have no packed kernel. A formula of many instructions has
// `static constexpr bool heavy = true` or is wrapped as Heavy<Formula>: its kernels are unrolled
// less.
#pragma once

#include <array>
#include <cstring>

#include "drivers/elementwise.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

// A formula of many instructions.
template <typename Op>
struct Heavy : Op {
  static constexpr bool heavy = true;
};

namespace elementwise {

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

// Loads `Count` contiguous elements in one access; their address is aligned to the size of all of
// them.
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

// The values of one operand that a thread holds in registers.
template <typename T, int Count>
struct Lanes {
  compute_t<T> values[Count];
};

// A tuple for device code: one set of lanes for each operand.
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
__device__ __forceinline__ T& get(Leaf<I, T>& leaf) {
  return leaf.value;
}

// Where `data` is null the operand is the number `value`.
template <typename T, int Vec>
__device__ __forceinline__ void load_unit(const void* data, const unsigned char* value, uint32_t offset, bool broadcast,
                                          compute_t<T>* values) {
  const auto* elements = static_cast<const memory_t<T>*>(data);
  if (Vec > 1 && data != nullptr && !broadcast) {
    load_packed<T, Vec>(elements + offset, values);
  } else {
    const compute_t<T> one =
        data == nullptr ? *reinterpret_cast<const compute_t<T>*>(value) : loaded<T>(elements[offset]);
#pragma unroll
    for (int j = 0; j < Vec; ++j) values[j] = one;
  }
}
template <typename T, int Vec>
__device__ __forceinline__ void store_unit(void* data, uint32_t offset, const compute_t<T>* values) {
  auto* elements = static_cast<memory_t<T>*>(data);
  if constexpr (Vec == 1)
    elements[offset] = stored<T>(values[0]);
  else
    store_packed<T, Vec>(elements + offset, values);
}

template <typename Op, typename OutList, typename InList>
struct Map;

template <typename Op, typename... Outs, typename... Ins>
struct Map<Op, Types<Outs...>, Types<Ins...>> {
  static constexpr int outs = sizeof...(Outs), ins = sizeof...(Ins), operands = outs + ins;
  static constexpr int widest = static_cast<int>(std::max({sizeof(memory_t<Outs>)..., sizeof(memory_t<Ins>)...}));
  // Four accesses of 8 bytes by each thread are as good as one of 16.
  static constexpr int vec = widest >= 8 ? 1 : 16 / widest;
  // Units (elements or packets) for each thread: enough to overlap its memory accesses.
  static constexpr int unroll_packed = !is_heavy<Op> && ins <= 1 ? 2 : 1;
  static constexpr int unroll_single = is_heavy<Op> ? 1 : widest >= 8 ? 4 : 2;

  struct Arguments {
    Op op;
    Piece<operands> piece;
  };

  template <int Vec, int Unroll, size_t... O, size_t... I>
  __device__ static __forceinline__ void run(const Arguments& a, std::index_sequence<O...>, std::index_sequence<I...>) {
    Pack<Lanes<Ins, Vec * Unroll>...> lanes;
    uint32_t out_offsets[Unroll][outs];
    const uint32_t first = blockIdx.x * (threads * Unroll) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const uint32_t i = first + u * threads;
      if (i < a.piece.indexer.count) {
        uint32_t offsets[operands];
        if constexpr (Vec > 1)
          a.piece.indexer.at_rolled(i, offsets);
        else
          a.piece.indexer.at(i, offsets);
        ((out_offsets[u][O] = offsets[O]), ...);
        (load_unit<Ins, Vec>(a.piece.data[outs + I], a.piece.values[outs + I], offsets[outs + I],
                             a.piece.indexer.strides[0][outs + I] == 0, get<I>(lanes).values + u * Vec),
         ...);
      }
    }
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const uint32_t i = first + u * threads;
      if (i < a.piece.indexer.count) {
        Pack<Lanes<Outs, Vec>...> results;
#pragma unroll
        for (int j = 0; j < Vec; ++j) {
          if constexpr (outs == 1)
            get<0>(results).values[j] = a.op(get<I>(lanes).values[u * Vec + j]...);
          else
            a.op(get<I>(lanes).values[u * Vec + j]..., &get<O>(results).values[j]...);
        }
        (store_unit<Outs, Vec>(a.piece.data[O], out_offsets[u][O], get<O>(results).values), ...);
      }
    }
  }
};

template <typename M, int Vec, int Unroll>
__global__ void __launch_bounds__(threads) map_kernel(const __grid_constant__ typename M::Arguments arguments) {
  M::template run<Vec, Unroll>(arguments, std::make_index_sequence<M::outs>{}, std::make_index_sequence<M::ins>{});
}

// The host code of one formula. The host code that all formulas share is in elementwise.cpp.
template <typename M, typename Op>
void launch_piece(const Call& call, const void* op, const Piece<M::operands>& piece, bool packed) {
  typename M::Arguments arguments{*static_cast<const Op*>(op), piece};
  const auto* kernel = reinterpret_cast<const void*>(map_kernel<M, 1, M::unroll_single>);
  int unroll = M::unroll_single;
  if constexpr (M::vec > 1) {
    if (packed) {
      kernel = reinterpret_cast<const void*>(map_kernel<M, M::vec, M::unroll_packed>);
      unroll = M::unroll_packed;
    }
  }
  launch_with(call, kernel, divide_up(piece.indexer.count, threads * unroll), threads, &arguments);
}

}  // namespace elementwise

// Runs a formula over operands that have the sizes of the first output.
template <typename OutList, typename InList, typename Op>
void map(const Call& call, const Op& op, std::array<const cb_tensor*, elementwise::Map<Op, OutList, InList>::outs> outs,
         std::array<const cb_tensor*, elementwise::Map<Op, OutList, InList>::ins> ins) {
  using M = elementwise::Map<Op, OutList, InList>;
  elementwise::Plan<M::operands> plan{};
  std::copy(outs.begin(), outs.end(), plan.tensors.begin());
  std::copy(ins.begin(), ins.end(), plan.tensors.begin() + M::outs);
  elementwise::describe(plan, OutList{}, InList{});
  plan.outs = M::outs;
  plan.vec = M::vec;
  elementwise::run_pieces(call, plan, elementwise::launch_piece<M, Op>, &op);
}

// The first N arguments: the operands of most elementwise operators, under various names.
template <size_t N>
std::array<const cb_tensor*, N> leading_tensors(const Call& call) {
  std::array<const cb_tensor*, N> tensors;
  for (size_t i = 0; i < N; ++i) tensors[i] = &call.tensor(static_cast<int>(i));
  return tensors;
}

// A formula with operands and result of the same element type T. The operands are the leading
// arguments or those given.
template <typename T, typename Op>
void map1(Call& call, const Op& op) {
  map<Types<T>, Types<T>>(call, op, {&call.output()}, leading_tensors<1>(call));
}
template <typename T, typename Op>
void map2(Call& call, const Op& op, const cb_tensor& first, const cb_tensor& second) {
  map<Types<T>, Types<T, T>>(call, op, {&call.output()}, {&first, &second});
}
template <typename T, typename Op>
void map2(Call& call, const Op& op) {
  map<Types<T>, Types<T, T>>(call, op, {&call.output()}, leading_tensors<2>(call));
}
template <typename T, typename Op>
void map3(Call& call, const Op& op) {
  map<Types<T>, Types<T, T, T>>(call, op, {&call.output()}, leading_tensors<3>(call));
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
// The same with results of type bool.
template <typename Op, typename List>
void unary_bool(Call& call) {
  const auto operands = leading_tensors<1>(call);
  dispatch<List>(operands.front()->dtype,
                 [&]<typename T>() { map<Types<bool>, Types<T>>(call, Op{}, {&call.output()}, operands); });
}
template <typename Op, typename List>
void binary_bool(Call& call) {
  const auto operands = leading_tensors<2>(call);
  dispatch<List>(operands.front()->dtype,
                 [&]<typename T>() { map<Types<bool>, Types<T, T>>(call, Op{}, {&call.output()}, operands); });
}

// ---- results that depend on the index alone

namespace elementwise {

template <typename F>
struct GenerateArguments {
  F value;
  Piece<1> piece;
  int64_t first;
};

template <typename T, typename F>
__global__ void __launch_bounds__(threads) generate_kernel(const __grid_constant__ GenerateArguments<F> a) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.piece.indexer.count) return;
  uint32_t offsets[1];
  a.piece.indexer.at_rolled(i, offsets);
  static_cast<memory_t<T>*>(a.piece.data[0])[offsets[0]] = stored<T>(static_cast<compute_t<T>>(a.value(a.first + i)));
}

template <typename T, typename F>
void launch_generate(const Call& call, const void* value, const Piece<1>& piece, int64_t first) {
  GenerateArguments<F> arguments{*static_cast<const F*>(value), piece, first};
  launch_with(call, reinterpret_cast<const void*>(generate_kernel<T, F>), divide_up(piece.indexer.count, threads),
              threads, &arguments);
}

}  // namespace elementwise

// Sets element i in row-major order to value(i); `value` is a function object with a
// __device__ operator()(int64_t).
template <typename T, typename F>
void generate(Call& call, const cb_tensor& out, const F& value) {
  elementwise::generate_pieces(call, out, sizeof(memory_t<T>), elementwise::launch_generate<T, F>, &value);
}

}  // namespace candelabra::cuda
