// Determinants of batches of square matrices: products of the diagonals of their LU factors.
#include <cmath>

#include "candelabra/arguments/solving.hpp"
#include "candelabra/formulas/complex.hpp"
#include "vendor/lapack.hpp"
#include "vendor/lapack_blocked.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// f(index, factors, odd) for each matrix of a batch; `odd` says whether the number of row exchanges
// is odd.
template <typename T, typename F>
void for_each_factored(const cb_tensor& input, F&& f) {
  const int64_t n = rows_of(input);
  for_each_matrix(batch_count(input, 2), std::max<int64_t>(1, n * n * n), [&](int64_t b) {
    ColumnMajor<T> a(n, n);
    a.load(input, b);
    LocalScratch<int> pivots(n);
    if (n > 0) factor_lu<T>(a.rows, a.columns, a.data(), a.leading, pivots.data());
    bool odd = false;
    for (int i = 0; i < a.rows; ++i) odd ^= pivots[i] != i + 1;
    f(b, a, odd);
  });
}

// float32 is accumulated in float64, so that products overflow later.
template <typename T>
using Wide = std::conditional_t<is_complex_v<T>, complex128, double>;

// (A) -> determinant
void det(Call& call) {
  const arguments::LinalgDet args(call);
  dispatch<LapackTypes>(args.A->dtype, [&]<typename T>() {
    for_each_factored<T>(*args.A, [&](int64_t b, ColumnMajor<T>& a, bool odd) {
      Wide<T> product(odd ? -1 : 1);
      for (int i = 0; i < a.rows; ++i) product *= static_cast<Wide<T>>(a.at(i, i));
      store_item<T>(static_cast<T>(product), call.output(0), b);
    });
  });
}

template <typename T>
T sign_of(T value) {
  if constexpr (is_complex_v<T>)
    return complex_math::sgn(value);
  else
    return static_cast<T>((value > 0) - (value < 0));
}

// (A) -> (sign, logarithm of the magnitude)
void slogdet(Call& call) {
  const arguments::LinalgSlogdet args(call);
  dispatch<LapackTypes>(args.A->dtype, [&]<typename T>() {
    for_each_factored<T>(*args.A, [&](int64_t b, ColumnMajor<T>& a, bool odd) {
      T sign(odd ? -1 : 1);
      double logarithm = 0;
      for (int i = 0; i < a.rows; ++i) {
        sign *= sign_of(a.at(i, i));
        logarithm += std::log(static_cast<double>(std::abs(a.at(i, i))));
      }
      store_item<T>(sign, call.output(0), b);
      store_item<real_t<T>>(static_cast<real_t<T>>(logarithm), call.output(1), b);
    });
  });
}

}  // namespace

void register_determinant(KernelTable& table) {
  table.add<det>("linalg_det");
  table.add<slogdet>("linalg_slogdet");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
