// Batches of systems of linear equations, on LAPACK.
#include "candelabra/arguments/solving.hpp"
#include "vendor/lapack.hpp"
#include "vendor/lapack_blocked.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Calls f(index) for each matrix and its right-hand sides.
template <typename F>
void each(const cb_tensor& matrices, const cb_tensor& right, F&& f) {
  const int64_t n = std::max(rows_of(matrices), columns_of(matrices));
  for_each_matrix(batch_count(right, 2), std::max<int64_t>(1, n * n * (n + columns_of(right))), std::forward<F>(f));
}

// A real row-major matrix is factored without transposing it: LAPACK sees its transpose, whose
// factors serve as well. A complex one is transposed, as in PyTorch, because nearly singular
// matrices may otherwise stop at another pivot.
template <typename T>
bool factors_transposed(const cb_tensor& t) {
  return !is_complex_v<T> && has_rows(t);
}

void solve(Call& call) {
  const arguments::LinalgSolveEx args(call);
  const cb_tensor &matrices = *args.A, &right = *args.B;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    const bool transposed = factors_transposed<T>(matrices);
    each(matrices, right, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(matrices), columns_of(matrices)), x(rows_of(right), columns_of(right));
      transposed ? a.load_transposed(matrices, b) : a.load(matrices, b);
      x.load(right, b);
      LocalScratch<int> pivots(a.rows);
      int info = 0;
      if (a.rows > 0) info = factor_lu<T>(a.rows, a.columns, a.data(), a.leading, pivots.data());
      if (a.rows > 0 && info == 0)
        solve_lu<T>(transposed ? "T" : "N", a.rows, x.columns, a.data(), a.leading, pivots.data(), x.data(), x.leading);
      x.store(call.output(0), b);
      store_item<int32_t>(info, call.output(1), b);
    });
  });
}

void invert(Call& call) {
  const cb_tensor& matrices = *arguments::LinalgInvEx(call).A;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    const bool transposed = factors_transposed<T>(matrices);
    const auto inverse_of = [](int n, T* a, int leading) {
      LocalScratch<int> pivots(n);
      if (n == 0) return 0;
      const int info = factor_lu<T>(n, n, a, leading, pivots.data());
      if (info == 0) invert_lu<T>(n, a, leading, pivots.data());
      return info;
    };
    each(matrices, matrices, [&](int64_t b) {
      int info;
      if (transposed) {
        // In place in the result, which is contiguous.
        const int n = lapack_int(rows_of(matrices));
        T* to = batch_item<T>(call.output(0), b, 2);
        copy_lines(to, n, batch_item<const T>(matrices, b, 2), matrices.strides[matrices.ndim - 2], n, n);
        info = inverse_of(n, to, std::max(1, n));
      } else {
        ColumnMajor<T> a(rows_of(matrices), columns_of(matrices));
        a.load(matrices, b);
        info = inverse_of(a.rows, a.data(), a.leading);
        a.store(call.output(0), b);
      }
      store_item<int32_t>(info, call.output(1), b);
    });
  });
}

// BLAS sees row-major matrices transposed: A is then on the other side, and its other triangle
// counts. So the right-hand sides stay in the result's memory, and a row-major A is not copied.
void solve_triangular(Call& call) {
  const arguments::LinalgSolveTriangular args(call);
  const cb_tensor &matrices = *args.self, &right = *args.B;
  cb_tensor& out = call.output(0);
  const bool upper = args.upper, left = args.left, unit = args.unitriangular;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    const int n = lapack_int(rows_of(matrices)), m = lapack_int(rows_of(right)),
              columns = lapack_int(columns_of(right));
    const bool rows = has_rows(matrices);
    each(matrices, right, [&](int64_t b) {
      T* x = batch_item<T>(out, b, 2);
      load_rows(right, b, x);
      if (m == 0 || columns == 0) return;
      const T one(1);
      const int leading = std::max(1, columns);
      const auto solve = [&](const char* part, const char* transpose, const T* a, int apart) {
        const char *side = left ? "R" : "L", *diagonal = unit ? "U" : "N";
        const int systems = left ? columns : m;  // independent of each other
        over_parts(systems, part_of_columns(systems, int64_t{n} * n), [&](int begin, int end) {
          const int here = end - begin;
          if (left)
            Lapack<T>::trsm(side, part, transpose, diagonal, &here, &m, &one, a, &apart, x + begin, &leading);
          else
            Lapack<T>::trsm(side, part, transpose, diagonal, &columns, &here, &one, a, &apart,
                            x + int64_t{begin} * leading, &leading);
        });
      };
      if (rows) {
        solve(upper ? "L" : "U", "N", batch_item<const T>(matrices, b, 2), leading_of(matrices));
      } else {
        ColumnMajor<T> a(n, n);
        a.load(matrices, b);
        solve(upper ? "U" : "L", "T", a.data(), a.leading);
      }
    });
  });
}

void lu_solve(Call& call) {
  const arguments::LinalgLuSolve args(call);
  const cb_tensor &matrices = *args.LU, &pivot_lists = *args.pivots, &right = *args.B;
  const bool adjoint = args.adjoint;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    each(matrices, right, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(matrices), columns_of(matrices)), x(rows_of(right), columns_of(right));
      a.load(matrices, b);
      x.load(right, b);
      Line<int> pivots = load_vector<int>(pivot_lists, b);
      for (int i = 0; i < a.rows; ++i)
        if (pivots[static_cast<size_t>(i)] < 1 || pivots[static_cast<size_t>(i)] > a.rows)
          throw failure(CB_RUNTIME_ERROR, "linalg.lu_solve: pivots must be between 1 and %d, but got %d", a.rows,
                        pivots[static_cast<size_t>(i)]);
      if (x.rows > 0)
        solve_lu<T>(adjoint ? "C" : "N", a.rows, x.columns, a.data(), a.leading, pivots.data(), x.data(), x.leading);
      x.store(call.output(0), b);
    });
  });
}

void ldl_solve(Call& call) {
  const arguments::LinalgLdlSolve args(call);
  const cb_tensor &matrices = *args.LD, &pivot_lists = *args.pivots, &right = *args.B;
  const bool hermitian = args.hermitian;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    each(matrices, right, [&](int64_t b) {
      ColumnMajor<T> a(rows_of(matrices), columns_of(matrices)), x(rows_of(right), columns_of(right));
      a.load(matrices, b);
      x.load(right, b);
      Line<int> pivots = load_vector<int>(pivot_lists, b);
      for (int i = 0; i < a.rows; ++i)
        if (pivots[static_cast<size_t>(i)] == 0 || std::abs(pivots[static_cast<size_t>(i)]) > a.rows)
          throw failure(CB_RUNTIME_ERROR,
                        "linalg.ldl_solve: pivots must be numbers of rows from 1 to %d, or their negatives, but got %d",
                        a.rows, pivots[static_cast<size_t>(i)]);
      int info = 0;
      if (x.rows > 0 && x.columns > 0)
        (hermitian ? Lapack<T>::hetrs : Lapack<T>::sytrs)("L", &a.rows, &x.columns, a.data(), &a.leading, pivots.data(),
                                                          x.data(), &x.leading, &info);
      x.store(call.output(0), b);
    });
  });
}

// Whether no intermediate of a factorization can overflow or underflow. LAPACK's drivers scale
// other input. If all values are zero the result is `zeros_are_safe`.
template <typename T>
bool is_safely_scaled(std::span<const T> values, bool zeros_are_safe) {
  using R = real_t<T>;
  const R* parts = reinterpret_cast<const R*>(values.data());
  const size_t count = values.size() * (sizeof(T) / sizeof(R));
  R largest(0);
#pragma omp simd reduction(max : largest)
  for (size_t i = 0; i < count; ++i) {
    const R size = std::abs(parts[i]);
    largest = size > largest ? size : largest;
  }
  const R smallest = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  return largest == R(0) ? zeros_are_safe : largest > smallest && largest < R(1) / smallest;
}

// Factors A = Q R. Overwrites the first rows of A with R, and x with the adjoint of Q times x.
template <typename T>
void reduce_to_triangle(ColumnMajor<T>& a, ColumnMajor<T>& x) {
  int info = 0;
  Line<T> tau(static_cast<size_t>(a.columns));
  with_work<T>([&](T* work, int* size) {
    Lapack<T>::geqrf(&a.rows, &a.columns, a.data(), &a.leading, tau.data(), work, size, &info);
  });
  with_work<T>([&](T* work, int* size) {
    Lapack<T>::ormqr("L", is_complex_v<T> ? "C" : "T", &a.rows, &x.columns, &a.columns, a.data(), &a.leading,
                     tau.data(), x.data(), &x.leading, work, size, &info);
  });
  for (int j = 0; j < a.columns; ++j)
    for (int i = j + 1; i < a.columns; ++i) a.at(i, j) = T(0);
}

// One least-squares problem. x holds the right-hand sides in its first rows, and is overwritten
// with the solution.
template <typename T>
struct LeastSquares {
  using R = real_t<T>;
  ColumnMajor<T>&a, &x;
  Line<R>& singular;
  R cutoff;
  int rank = std::min(a.rows, a.columns), info = 0;

  void by_gels() {
    with_work<T>([&](T* work, int* size) {
      Lapack<T>::gels("N", &a.rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, work, size,
                      &info);
    });
    if (info > 0)
      throw failure(
          CB_RUNTIME_ERROR,
          "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have "
          "full rank (error code: %d).",
          info);
  }

  // QR with column pivoting is memory bound. A tall matrix is therefore reduced to its triangular
  // factor first, whose columns have the same lengths and angles. (Chan, "An improved algorithm for
  // computing the singular value decomposition", 1982, does so for the SVD.) The thresholds were
  // found by measurement.
  void by_gelsy() {
    int rows = a.rows;
    if (a.rows >= 160 && a.rows >= 4 * a.columns && is_safely_scaled<T>(a.values(), false) &&
        is_safely_scaled<T>(x.values(), true)) {
      reduce_to_triangle(a, x);
      rows = a.columns;
    }
    std::vector<int> columns(static_cast<size_t>(a.columns));
    Line<R> reals(static_cast<size_t>(2 * a.columns));
    with_work<T>([&](T* work, int* size) {
      if constexpr (is_complex_v<T>)
        Lapack<T>::gelsy(&rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, columns.data(),
                         &cutoff, &rank, work, size, reals.data(), &info);
      else
        Lapack<T>::gelsy(&rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, columns.data(),
                         &cutoff, &rank, work, size, &info);
    });
  }

  void by_gelss() {
    Line<R> reals(static_cast<size_t>(5 * rank));
    with_work<T>([&](T* work, int* size) {
      if constexpr (is_complex_v<T>)
        Lapack<T>::gelss(&a.rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, singular.data(),
                         &cutoff, &rank, work, size, reals.data(), &info);
      else
        Lapack<T>::gelss(&a.rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, singular.data(),
                         &cutoff, &rank, work, size, &info);
    });
  }

  void by_gelsd() {
    const auto run = [&](T* work, int* size, R* reals, int* integers) {
      if constexpr (is_complex_v<T>)
        Lapack<T>::gelsd(&a.rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, singular.data(),
                         &cutoff, &rank, work, size, reals, integers, &info);
      else
        Lapack<T>::gelsd(&a.rows, &a.columns, &x.columns, a.data(), &a.leading, x.data(), &x.leading, singular.data(),
                         &cutoff, &rank, work, size, integers, &info);
    };
    // One query returns the sizes of all workspaces.
    int query = -1, optimal_int = 0;
    T optimal{};
    R optimal_real{};
    run(&optimal, &query, &optimal_real, &optimal_int);
    int size = work_size(std::real(optimal));
    Line<T> work(static_cast<size_t>(size));
    Line<R> reals(static_cast<size_t>(work_size(optimal_real)));
    std::vector<int> integers(static_cast<size_t>(std::max(1, optimal_int)));
    run(work.data(), &size, reals.data(), integers.data());
  }
};

// Returns the rank (with gels: the smaller side).
template <typename T>
int least_squares(std::string_view driver, ColumnMajor<T>& a, ColumnMajor<T>& x, Line<real_t<T>>& singular,
                  double rcond) {
  // LAPACK reports such input as bad arguments, or not at all.
  if (!all_finite(a.values()) || !all_finite(x.values()))
    throw failure(
        CB_RUNTIME_ERROR,
        "torch.linalg.lstsq: the least squares solution could not be computed because the input contains elements that "
        "are not finite.");
  LeastSquares<T> problem{a, x, singular, static_cast<real_t<T>>(rcond)};
  if (driver == "gels")
    problem.by_gels();
  else if (driver == "gelsy")
    problem.by_gelsy();
  else if (driver == "gelss")
    problem.by_gelss();
  else
    problem.by_gelsd();
  if (problem.info > 0)
    throw failure(CB_RUNTIME_ERROR,
                  "torch.linalg.lstsq: the algorithm for computing the SVD failed to converge (error code: %d).",
                  problem.info);
  return problem.rank;
}

// The first output has max(m, n) rows.
void lstsq(Call& call) {
  const arguments::LinalgLstsqDriver args(call);
  const cb_tensor &matrices = *args.A, &right = *args.B;
  const double rcond = args.rcond;
  const std::string_view driver = args.driver;
  const int64_t sides[] = {rows_of(matrices), columns_of(matrices)},
                work = sides[0] * sides[1] * std::min(sides[0], sides[1]);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    for_each_matrix(batch_count(right, 2), std::max<int64_t>(1, work), threads_of_library(work), [&](int64_t b) {
      ColumnMajor<T> a(sides[0], sides[1]), x(rows_of(call.output(0)), columns_of(right));
      a.load(matrices, b);
      x.load(right, b);
      const int k = std::min(a.rows, a.columns);
      Line<real_t<T>> singular(static_cast<size_t>(std::max(1, k)));
      int rank = 0;
      if (k > 0 && x.columns > 0)
        rank = least_squares<T>(driver, a, x, singular, rcond);
      else
        x.clear();
      x.store(call.output(0), b);
      store_item<int64_t>(rank, call.output(1), b);
      if (call.output(2).numel > 0) store_vector<real_t<T>>(singular.data(), call.output(2), b);
    });
  });
}

}  // namespace

void register_solving(KernelTable& table) {
  table.add<solve>("linalg_solve_ex");
  table.add<invert>("linalg_inv_ex");
  table.add<solve_triangular>("linalg_solve_triangular");
  table.add<lu_solve>("linalg_lu_solve");
  table.add<ldl_solve>("linalg_ldl_solve");
  table.add<lstsq>("linalg_lstsq_driver");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
