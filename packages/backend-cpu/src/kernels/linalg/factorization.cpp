// Factorizations of batches of matrices on LAPACK: Cholesky, LU, LDL, QR.
#include <array>
#include <utility>

#include "candelabra/arguments/factorization.hpp"
#include "drivers/iterate.hpp"
#include "vendor/lapack.hpp"
#include "vendor/lapack_blocked.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// f(index) for each matrix of the batch; a matrix costs about n³ additions.
template <typename F>
void for_each_factorization(const cb_tensor& input, F&& f) {
  const int64_t m = rows_of(input), n = columns_of(input);
  for_each_matrix(batch_count(input, 2), std::max<int64_t>(1, m * n * std::min(m, n)), std::forward<F>(f));
}

// (self, upper) -> (L, info)
void cholesky(Call& call) {
  const arguments::LinalgCholeskyEx args(call);
  const cb_tensor& input = *args.self;
  const bool upper = args.upper;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      // In place in the result: its rows are LAPACK's columns, so LAPACK computes the other
      // triangle, which is the transpose.
      T* to = batch_item<T>(call.output(0), b, 2);
      const int n = lapack_int(rows_of(input));
      load_rows(input, b, to);
      const int info = factor_cholesky<T>(!upper, n, to, std::max(1, n));
      for (int64_t i = 0; i < n; ++i) std::fill_n(to + i * n + (upper ? 0 : i + 1), upper ? i : n - i - 1, T(0));
      store_item<int32_t>(info, call.output(1), b);
    });
  });
}

// Gaussian elimination without pivoting; returns info.
template <typename T>
int factor_without_pivots(ColumnMajor<T>& a) {
  int info = 0;
  for (int k = 0; k < std::min(a.rows, a.columns); ++k) {
    const T pivot = a.at(k, k);
    if (pivot == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int i = k + 1; i < a.rows; ++i) a.at(i, k) /= pivot;
    for (int j = k + 1; j < a.columns; ++j)
      for (int i = k + 1; i < a.rows; ++i) a.at(i, j) -= a.at(i, k) * a.at(k, j);
  }
  return info;
}

// (A, pivot) -> (LU, pivots, info)
void lu_factor(Call& call) {
  const arguments::LinalgLuFactorEx args(call);
  const cb_tensor& input = *args.A;
  const bool pivot = args.pivot;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      LocalScratch<int> pivots(std::min(a.rows, a.columns));
      int info = 0;
      if (pivot) {
        if (a.rows > 0 && a.columns > 0) info = factor_lu<T>(a.rows, a.columns, a.data(), a.leading, pivots.data());
      } else {
        info = factor_without_pivots(a);
        for (int i = 0; i < std::min(a.rows, a.columns); ++i) pivots[i] = i + 1;
      }
      a.store(call.output(0), b);
      store_vector<int32_t>(pivots.data(), call.output(1), b);
      store_item<int32_t>(info, call.output(2), b);
    });
  });
}

// (self, dim, backwards): the permutation that the row exchanges of LU pivots make
void lu_pivots_to_permutation(Call& call) {
  const arguments::LuPivotsToPermutation args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  const int dim = static_cast<int>(args.dim);
  const bool backwards = args.backwards;
  if (out.numel == 0) return;
  const int64_t length = in.sizes[dim], in_step = in.strides[dim], out_step = out.strides[dim];
  std::array<int64_t, max_dims> sizes;
  std::copy_n(in.sizes, in.ndim, sizes.begin());
  sizes[static_cast<size_t>(dim)] = 1;
  cb_tensor slices_in = in, slices_out = out;  // one element per slice along dim
  slices_in.sizes = slices_out.sizes = sizes.data();
  slices_in.numel = slices_out.numel = in.numel / length;
  const auto g = geometry<2>({&slices_out, &slices_in});
  dispatch<Types<int32_t, int64_t>>(in.dtype, [&]<typename T>() {
    parallel_for(g.numel, grain_for(8 * length), [&](int64_t begin, int64_t end) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t slices) {
        for (int64_t slice = 0; slice < slices; ++slice) {
          const T* pivots = data<T>(in) + at[1] + slice * g.strides[1][0];
          int64_t* order = mutable_data<int64_t>(out) + at[0] + slice * g.strides[0][0];
          for (int64_t i = 0; i < length; ++i) order[i * out_step] = i;
          for (int64_t k = 0; k < length; ++k) {
            const int64_t i = backwards ? length - 1 - k : k;
            const int64_t pivot = pivots[i * in_step];
            if (pivot < 1 || pivot > length)
              throw failure(CB_RUNTIME_ERROR, "pivots must be between 1 and %lld, but got %lld",
                            static_cast<long long>(length), static_cast<long long>(pivot));
            std::swap(order[i * out_step], order[(pivot - 1) * out_step]);
          }
        }
      });
    });
  });
}

// (self, hermitian) -> (LD, pivots, info)
void ldl_factor(Call& call) {
  const arguments::LinalgLdlFactorEx args(call);
  const cb_tensor& input = *args.self;
  const bool hermitian = args.hermitian;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      LocalScratch<int> pivots(a.rows);
      int info = 0;
      if (a.rows > 0)
        with_work<T>([&](T* work, int* size) {
          (hermitian ? Lapack<T>::hetrf : Lapack<T>::sytrf)("L", &a.rows, a.data(), &a.leading, pivots.data(), work,
                                                            size, &info);
        });
      for (int j = 1; j < a.columns; ++j)
        for (int i = 0; i < j; ++i) a.at(i, j) = T(0);
      a.store(call.output(0), b);
      store_vector<int32_t>(pivots.data(), call.output(1), b);
      store_item<int32_t>(info, call.output(2), b);
    });
  });
}

template <typename T>
void factor_qr(ColumnMajor<T>& a, Line<T>& tau) {
  int info = 0;
  if (a.rows > 0 && a.columns > 0)
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::geqrf(&a.rows, &a.columns, a.data(), &a.leading, tau.data(), work, size, &info);
    });
}

// The first a.columns columns of the product of the `count` reflectors stored in `a` below its
// diagonal.
template <typename T>
void form_q(ColumnMajor<T>& a, Line<T>& tau, int count) {
  int info = 0;
  if (a.rows > 0 && a.columns > 0)
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::orgqr(&a.rows, &a.columns, &count, a.data(), &a.leading, tau.data(), work, size, &info);
    });
}

// (self) -> (a, tau)
void geqrf(Call& call) {
  const arguments::Geqrf args(call);
  const cb_tensor& input = *args.self;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      Line<T> tau(static_cast<size_t>(std::max(1, std::min(a.rows, a.columns))));
      factor_qr(a, tau);
      a.store(call.output(0), b);
      store_vector<T>(tau.data(), call.output(1), b);
    });
  });
}

// (A, mode) -> (Q, R)
void qr(Call& call) {
  const arguments::LinalgQr args(call);
  const cb_tensor& input = *args.A;
  const bool wants_q = args.mode != "r";
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      cb_tensor &out_q = call.output(0), &out_r = call.output(1);
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      const int k = std::min(a.rows, a.columns);
      Line<T> tau(static_cast<size_t>(std::max(1, k)));
      factor_qr(a, tau);
      ColumnMajor<T> r(rows_of(out_r), a.columns);
      r.clear();
      for (int j = 0; j < r.columns; ++j)
        for (int i = 0; i <= std::min(j, k - 1); ++i) r.at(i, j) = a.at(i, j);
      r.store(out_r, b);
      if (!wants_q) return;
      ColumnMajor<T> q(a.rows, columns_of(out_q));
      if (q.columns > k) q.clear();
      std::copy_n(a.data(), static_cast<int64_t>(a.leading) * std::min(q.columns, k), q.data());
      form_q(q, tau, std::min(k, q.columns));
      q.store(out_q, b);
    });
  });
}

// (input, tau) -> Q, with as many columns as the input
void householder_product(Call& call) {
  const arguments::LinalgHouseholderProduct args(call);
  const cb_tensor &input = *args.input, &scales = *args.tau;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    for_each_factorization(input, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      Line<T> tau = load_vector<T>(scales, b);
      form_q(a, tau, lapack_int(scales.sizes[scales.ndim - 1]));
      a.store(call.output(0), b);
    });
  });
}

}  // namespace

void register_factorization(KernelTable& table) {
  table.add<cholesky>("linalg_cholesky_ex");
  table.add<lu_factor>("linalg_lu_factor_ex");
  table.add<lu_pivots_to_permutation>("_lu_pivots_to_permutation");
  table.add<ldl_factor>("linalg_ldl_factor_ex");
  table.add<geqrf>("geqrf");
  table.add<qr>("linalg_qr");
  table.add<householder_product>("linalg_householder_product");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
