// Eigenvalues and singular values of batches of matrices, on LAPACK.
#include "candelabra/arguments/spectral.hpp"
#include "vendor/lapack.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// `info` for input with infinities or NaN, with which LAPACK may not terminate.
constexpr int32_t not_finite = -1;

int64_t work_of(const cb_tensor& input) {
  const int64_t m = rows_of(input), n = columns_of(input);
  return m * n * std::min(m, n);
}

template <typename F>
void each(const cb_tensor& input, int32_t library_threads, F&& f) {
  for_each_matrix(batch_count(input, 2), std::max<int64_t>(1, 8 * work_of(input)), library_threads, std::forward<F>(f));
}

// syevd or heevd, whose parameters differ.
template <typename T>
int symmetric_eigenvalues(ColumnMajor<T>& a, Line<real_t<T>>& values, bool vectors, bool upper) {
  const char *job = vectors ? "V" : "N", *part = upper ? "U" : "L";
  int info = 0, query = -1, optimal_int = 0;
  T optimal{};
  real_t<T> optimal_real{};
  if constexpr (is_complex_v<T>)
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), &optimal, &query, &optimal_real, &query,
                     &optimal_int, &query, &info);
  else
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), &optimal, &query, &optimal_int, &query,
                     &info);
  int size = work_size(std::real(optimal)), int_size = std::max(1, optimal_int);
  Line<T> work(static_cast<size_t>(size));
  std::vector<int> integers(static_cast<size_t>(int_size));
  if constexpr (is_complex_v<T>) {
    int real_size = work_size(optimal_real);
    Line<real_t<T>> reals(static_cast<size_t>(real_size));
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), work.data(), &size, reals.data(),
                     &real_size, integers.data(), &int_size, &info);
  } else {
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), work.data(), &size, integers.data(),
                     &int_size, &info);
  }
  return info;
}

void eigh(Call& call) {
  const arguments::LinalgEighEx args(call);
  const cb_tensor& input = *args.A;
  const bool upper = args.UPLO == "U", vectors = args.compute_v;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    // Eigenvectors gain from threads at smaller sizes than singular values do.
    each(input, threads_of_library(2 * work_of(input)), [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      Line<real_t<T>> values(static_cast<size_t>(std::max(1, a.rows)));
      int info = 0;
      if (!all_finite(a.values()))
        info = not_finite;
      else if (a.rows > 0)
        info = symmetric_eigenvalues(a, values, vectors, upper);
      store_vector<real_t<T>>(values.data(), call.output(0), b);
      if (vectors) a.store(call.output(1), b);
      store_item<int32_t>(info, call.output(2), b);
    });
  });
}

// For real matrices LAPACK returns conjugate pairs of eigenvalues, and the real and imaginary parts
// of one eigenvector of each.
template <typename T>
int general_eigenvalues(ColumnMajor<T>& a, Line<std::complex<real_t<T>>>& values,
                        ColumnMajor<std::complex<real_t<T>>>& vectors, bool compute_vectors) {
  using R = real_t<T>;
  int info = 0, one = 1;
  const char* job = compute_vectors ? "V" : "N";
  if constexpr (is_complex_v<T>) {
    Line<R> reals(static_cast<size_t>(2 * a.rows));
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::geev("N", job, &a.rows, a.data(), &a.leading, values.data(), nullptr, &one, vectors.data(),
                      &vectors.leading, work, size, reals.data(), &info);
    });
  } else {
    Line<R> real(static_cast<size_t>(a.rows)), imaginary(static_cast<size_t>(a.rows));
    ColumnMajor<R> parts(a.rows, a.rows);
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::geev("N", job, &a.rows, a.data(), &a.leading, real.data(), imaginary.data(), nullptr, &one,
                      parts.data(), &parts.leading, work, size, &info);
    });
    for (int j = 0; j < a.rows; ++j) {
      values[static_cast<size_t>(j)] = {real[static_cast<size_t>(j)], imaginary[static_cast<size_t>(j)]};
      const bool pair = compute_vectors && imaginary[static_cast<size_t>(j)] > 0 && j + 1 < a.rows;
      if (pair)
        values[static_cast<size_t>(j) + 1] = {real[static_cast<size_t>(j) + 1], imaginary[static_cast<size_t>(j) + 1]};
      for (int i = 0; compute_vectors && i < a.rows; ++i) {
        vectors.at(i, j) = {parts.at(i, j), pair ? parts.at(i, j + 1) : R(0)};
        if (pair) vectors.at(i, j + 1) = std::conj(vectors.at(i, j));
      }
      if (pair) ++j;
    }
  }
  return info;
}

void eig(Call& call) {
  const arguments::LinalgEigEx args(call);
  const cb_tensor& input = *args.A;
  const bool compute_vectors = args.compute_v;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    using C = std::complex<real_t<T>>;
    constexpr int32_t library_threads = 1;  // geev gains nothing from more
    each(input, library_threads, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      Line<C> values(static_cast<size_t>(std::max(1, a.rows)));
      ColumnMajor<C> vectors(compute_vectors ? a.rows : 0, compute_vectors ? a.rows : 0);
      int info = 0;
      if (!all_finite(a.values()))
        info = not_finite;
      else if (a.rows > 0)
        info = general_eigenvalues(a, values, vectors, compute_vectors);
      store_vector<C>(values.data(), call.output(0), b);
      if (compute_vectors) vectors.store(call.output(1), b);
      store_item<int32_t>(info, call.output(2), b);
    });
  });
}

void svd(Call& call) {
  const arguments::LinalgSvdEx args(call);
  const cb_tensor& input = *args.A;
  const bool full = args.full_matrices, vectors = args.compute_uv;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    using R = real_t<T>;
    each(input, threads_of_library(work_of(input)), [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      const int k = std::min(a.rows, a.columns), large = std::max(a.rows, a.columns);
      ColumnMajor<T> u(vectors ? a.rows : 0, vectors ? (full ? a.rows : k) : 0),
          vh(vectors ? (full ? a.columns : k) : 0, vectors ? a.columns : 0);
      Line<R> values(static_cast<size_t>(std::max(1, k)));
      int info = 0;
      if (!all_finite(a.values())) {
        info = not_finite;
      } else if (k > 0) {
        const char* job = !vectors ? "N" : full ? "A" : "S";
        std::vector<int> integers(static_cast<size_t>(8 * k));
        if constexpr (is_complex_v<T>) {
          const int64_t k64 = k,
                        reals = std::max(5 * k64 * k64 + 5 * k64, 2 * int64_t{large} * k64 + 2 * k64 * k64 + k64);
          Line<R> real_work(static_cast<size_t>(std::max<int64_t>(7 * k64, reals)));
          with_work<T>([&](T* work, int* size) {
            Lapack<T>::gesdd(job, &a.rows, &a.columns, a.data(), &a.leading, values.data(), u.data(), &u.leading,
                             vh.data(), &vh.leading, work, size, real_work.data(), integers.data(), &info);
          });
        } else {
          with_work<T>([&](T* work, int* size) {
            Lapack<T>::gesdd(job, &a.rows, &a.columns, a.data(), &a.leading, values.data(), u.data(), &u.leading,
                             vh.data(), &vh.leading, work, size, integers.data(), &info);
          });
        }
      } else if (vectors && full) {  // an empty matrix: any orthonormal bases
        u.clear();
        vh.clear();
        for (int i = 0; i < u.rows; ++i) u.at(i, i) = T(1);
        for (int i = 0; i < vh.rows; ++i) vh.at(i, i) = T(1);
      }
      store_vector<R>(values.data(), call.output(1), b);
      if (vectors) {
        u.store(call.output(0), b);
        vh.store(call.output(2), b);
      }
      store_item<int32_t>(info, call.output(3), b);
    });
  });
}

}  // namespace

void register_spectral(KernelTable& table) {
  table.add<eigh>("linalg_eigh_ex");
  table.add<eig>("linalg_eig_ex");
  table.add<svd>("linalg_svd_ex");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
