// Eigenvalues and singular values of batches of matrices on LAPACK.
#include "../lapack.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// What `info` is where the input holds infinities or NaN, with which LAPACK may not come to an end.
constexpr int32_t not_finite = -1;

int64_t work_of(const cb_tensor& input) {
  const int64_t m = rows_of(input), n = columns_of(input);
  return m * n * std::min(m, n);
}

template <typename F>
void each(const cb_tensor& input, int32_t library_threads, F&& f) {
  for_each_matrix(batch_count(input, 2), std::max<int64_t>(1, 8 * work_of(input)), library_threads, std::forward<F>(f));
}

// syevd and heevd, whose lists of arguments differ.
template <typename T>
int symmetric_eigenvalues(ColumnMajor<T>& a, Line<real_t<T>>& values, bool vectors, bool upper) {
  const char *job = vectors ? "V" : "N", *part = upper ? "U" : "L";
  int info = 0, query = -1, wanted_int = 0;
  T wanted{};
  real_t<T> wanted_real{};
  if constexpr (is_complex_v<T>)
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), &wanted, &query, &wanted_real, &query, &wanted_int,
                     &query, &info);
  else
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), &wanted, &query, &wanted_int, &query, &info);
  int size = work_size(std::real(wanted)), int_size = std::max(1, wanted_int);
  Line<T> work(static_cast<size_t>(size));
  std::vector<int> integers(static_cast<size_t>(int_size));
  if constexpr (is_complex_v<T>) {
    int real_size = work_size(wanted_real);
    Line<real_t<T>> reals(static_cast<size_t>(real_size));
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), work.data(), &size, reals.data(), &real_size,
                     integers.data(), &int_size, &info);
  } else {
    Lapack<T>::syevd(job, part, &a.rows, a.data(), &a.leading, values.data(), work.data(), &size, integers.data(), &int_size,
                     &info);
  }
  return info;
}

// (A, UPLO, compute_v) -> (eigenvalues, eigenvectors, info)
void eigh(Call& call) {
  const cb_tensor& input = call.tensor(0);
  const bool upper = call.string(1) == "U", vectors = call.boolean(2);
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    // Vectors gain from threads earlier than singular values do (measured: three quarters of the time at 256 rows).
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

// Real matrices: LAPACK gives pairs of conjugate eigenvalues, and the real and the imaginary part of their vectors.
template <typename T>
int general_eigenvalues(ColumnMajor<T>& a, Line<std::complex<real_t<T>>>& values, ColumnMajor<std::complex<real_t<T>>>& vectors,
                        bool wanted) {
  using R = real_t<T>;
  int info = 0, one = 1;
  const char* job = wanted ? "V" : "N";
  if constexpr (is_complex_v<T>) {
    Line<R> reals(static_cast<size_t>(2 * a.rows));
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::geev("N", job, &a.rows, a.data(), &a.leading, values.data(), nullptr, &one, vectors.data(), &vectors.leading, work,
                      size, reals.data(), &info);
    });
  } else {
    Line<R> real(static_cast<size_t>(a.rows)), imaginary(static_cast<size_t>(a.rows));
    ColumnMajor<R> parts(a.rows, a.rows);
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::geev("N", job, &a.rows, a.data(), &a.leading, real.data(), imaginary.data(), nullptr, &one, parts.data(),
                      &parts.leading, work, size, &info);
    });
    for (int j = 0; j < a.rows; ++j) {
      values[static_cast<size_t>(j)] = {real[static_cast<size_t>(j)], imaginary[static_cast<size_t>(j)]};
      const bool pair = wanted && imaginary[static_cast<size_t>(j)] > 0 && j + 1 < a.rows;
      if (pair) values[static_cast<size_t>(j) + 1] = {real[static_cast<size_t>(j) + 1], imaginary[static_cast<size_t>(j) + 1]};
      for (int i = 0; wanted && i < a.rows; ++i) {
        vectors.at(i, j) = {parts.at(i, j), pair ? parts.at(i, j + 1) : R(0)};
        if (pair) vectors.at(i, j + 1) = std::conj(vectors.at(i, j));
      }
      if (pair) ++j;
    }
  }
  return info;
}

// (A, compute_v) -> (eigenvalues, eigenvectors, info)
void eig(Call& call) {
  const cb_tensor& input = call.tensor(0);
  const bool wanted = call.boolean(1);
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    using C = std::complex<real_t<T>>;
    constexpr int32_t one = 1;  // measured: two are no quicker
    each(input, one, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(input), columns_of(input));
      a.load(input, b);
      Line<C> values(static_cast<size_t>(std::max(1, a.rows)));
      ColumnMajor<C> vectors(wanted ? a.rows : 0, wanted ? a.rows : 0);
      int info = 0;
      if (!all_finite(a.values()))
        info = not_finite;
      else if (a.rows > 0)
        info = general_eigenvalues(a, values, vectors, wanted);
      store_vector<C>(values.data(), call.output(0), b);
      if (wanted) vectors.store(call.output(1), b);
      store_item<int32_t>(info, call.output(2), b);
    });
  });
}

// (A, full_matrices, compute_uv) -> (U, S, Vh, info)
void svd(Call& call) {
  const cb_tensor& input = call.tensor(0);
  const bool full = call.boolean(1), vectors = call.boolean(2);
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
          const int64_t k64 = k, reals = std::max(5 * k64 * k64 + 5 * k64, 2 * int64_t{large} * k64 + 2 * k64 * k64 + k64);
          Line<R> real_work(static_cast<size_t>(std::max<int64_t>(7 * k64, reals)));
          with_work<T>([&](T* work, int* size) {
            Lapack<T>::gesdd(job, &a.rows, &a.columns, a.data(), &a.leading, values.data(), u.data(), &u.leading, vh.data(),
                             &vh.leading, work, size, real_work.data(), integers.data(), &info);
          });
        } else {
          with_work<T>([&](T* work, int* size) {
            Lapack<T>::gesdd(job, &a.rows, &a.columns, a.data(), &a.leading, values.data(), u.data(), &u.leading, vh.data(),
                             &vh.leading, work, size, integers.data(), &info);
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
