// The weight of a recurrent layer as a factor of all steps, packed once per call for the vector
// units or for AMX. A worker multiplies rows by panels of it, on one thread.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/amx/tile_panels.hpp"
#include "gemm/panels.hpp"
#include "kernels/recurrent/sequence.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// A k × n matrix, stored as n × k if `transposed`. Both kinds of factor have panels that are four
// registers wide. first(panel, register) returns the first column and the number of columns of a
// register.
struct Matrix {
  const void* data;
  int64_t k, n;
  bool transposed;
};

template <typename C>
class VectorFactor {
 public:
  static constexpr int64_t lanes = math::Vec<C>::size, width = Panels<C>::width;

  template <typename First>
  VectorFactor(const Matrix& matrix, int64_t panels, First first)
      : k_(matrix.k),
        panels_(static_cast<const C*>(matrix.data), matrix.transposed ? matrix.k : matrix.n, matrix.transposed,
                matrix.k, panels, first) {}

  class Worker {
   public:
    Worker(VectorFactor& factor, int64_t) : factor_(factor) {}
    static constexpr bool interleaves = false;
    void set_rows(const C* rows, int64_t step, int64_t count) {
      rows_ = rows;
      step_ = step;
      count_ = count;
    }
    template <typename Before>
    void multiply(int64_t panel, C* sums, int vectors, Before&& before) {
      Panels<C>::multiply_panel(factor_.panels_.panel(panel), factor_.k_, rows_, step_, 1, count_, sums, vectors, false,
                                before);
    }

   private:
    VectorFactor& factor_;
    const C* rows_ = nullptr;
    int64_t step_ = 0, count_ = 0;
  };

 private:
  int64_t k_;
  Panels<C> panels_;
};

class TileFactor {
 public:
  static constexpr int64_t lanes = tile_columns, width = tile_panel_columns;

  template <typename First>
  TileFactor(const Matrix& matrix, int64_t panels, First first)
      : k_(matrix.k),
        panels_(static_cast<const float*>(matrix.data), matrix.transposed ? matrix.k : 1,
                matrix.transposed ? 1 : matrix.n, matrix.k, columns_of(panels, first)) {}

  class Worker {
   public:
    Worker(TileFactor& factor, int64_t most_rows) : factor_(factor), rows_(most_rows, factor.k_) {}
    static constexpr bool interleaves = true;
    void set_rows(const float* rows, int64_t step, int64_t count) { rows_.set_rows(rows, step, count); }
    // between(i, n) is called n times, and does part i of some other work.
    template <typename F>
    void multiply(int64_t panel, float* sums, int vectors, F&& between) {
      const auto work = [](void* context, int64_t part, int64_t parts) {
        (*static_cast<std::remove_reference_t<F>*>(context))(part, parts);
      };
      rows_.multiply(factor_.panels_, panel, sums, vectors, {work, &between});
    }

   private:
    TileFactor& factor_;
    TileRows rows_;
  };

 private:
  template <typename First>
  static std::vector<TileColumns> columns_of(int64_t panels, First first) {
    std::vector<TileColumns> columns;
    for (int64_t panel = 0; panel < panels; ++panel)
      for (int v = 0; v < panel_vectors; ++v) {
        const auto [column, count] = first(panel, v);
        columns.push_back({column, count});
      }
    return columns;
  }
  int64_t k_;
  TilePanels panels_;
};

// How rows are multiplied by the weight: unpacked, packed for vectors, or packed for AMX.
enum class Way { unpacked, vectors, amx };

// AMX needs several rows in most steps, because few rows leave tiles empty, and a weight of more
// than a few tiles.
template <typename C>
Way way_of(const Sequence& sequence, int64_t gates) {
  constexpr int64_t least_rows = 8, least_side = 32;
  const int64_t rows = sequence.all_rows();
  if (rows < rows_worth_packing) return Way::unpacked;
  if (std::is_same_v<C, float> && math::Vec<float>::size == tile_columns && rows >= least_rows * sequence.steps &&
      sequence.hidden >= least_side && gates * sequence.hidden >= 2 * least_side && has_amx_gemm())
    return Way::amx;
  return Way::vectors;
}

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
