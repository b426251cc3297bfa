// The bandwidth of memory and caches: seconds per pass of reading, copying, scaling in place,
// adding two arrays into a third, and filling, for several working sets, over all threads. The
// better of ordinary and non-temporal stores counts. Prints lines "KIND WORKING_SET_BYTES SECONDS".
// After McCalpin's STREAM, with reading and filling added.
#include <immintrin.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>

namespace {

constexpr std::size_t STEP = 32;  // floats per iteration: two cache lines

double sum(const float* a, std::size_t count) {
  __m256 lanes[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::size_t i = 0; i < count; i += STEP)
    for (std::size_t lane = 0; lane < 4; ++lane)
      lanes[lane] = _mm256_add_ps(lanes[lane], _mm256_load_ps(a + i + 8 * lane));
  const __m256 total = _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[1]), _mm256_add_ps(lanes[2], lanes[3]));
  return static_cast<double>(_mm256_cvtss_f32(total));
}

template <bool STREAMED>
void store(float* to, __m256 value) {
  if constexpr (STREAMED)
    _mm256_stream_ps(to, value);
  else
    _mm256_store_ps(to, value);
}

template <bool STREAMED>
void copy(float* to, const float* a, std::size_t count) {
  for (std::size_t i = 0; i < count; i += STEP)
    for (std::size_t lane = 0; lane < STEP; lane += 8) store<STREAMED>(to + i + lane, _mm256_load_ps(a + i + lane));
}

void scale(float* a, std::size_t count) {
  const __m256 factor = _mm256_set1_ps(-1.0F);
  for (std::size_t i = 0; i < count; i += STEP)
    for (std::size_t lane = 0; lane < STEP; lane += 8)
      _mm256_store_ps(a + i + lane, _mm256_mul_ps(factor, _mm256_load_ps(a + i + lane)));
}

template <bool STREAMED>
void triad(float* to, const float* a, const float* b, std::size_t count) {
  const __m256 factor = _mm256_set1_ps(1.5F);
  for (std::size_t i = 0; i < count; i += STEP)
    for (std::size_t lane = 0; lane < STEP; lane += 8)
      store<STREAMED>(to + i + lane,
                      _mm256_fmadd_ps(factor, _mm256_load_ps(b + i + lane), _mm256_load_ps(a + i + lane)));
}

template <bool STREAMED>
void fill(float* to, std::size_t count) {
  const __m256 value = _mm256_set1_ps(2.5F);
  for (std::size_t i = 0; i < count; i += STEP)
    for (std::size_t lane = 0; lane < STEP; lane += 8) store<STREAMED>(to + i + lane, value);
}

// The best time of a pass by all threads, each over its own part.
template <typename Pass>
double best(std::size_t count, std::size_t passes, Pass&& pass) {
  double found = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 5; ++trial) {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel
    {
      const auto threads = static_cast<std::size_t>(omp_get_num_threads());
      const std::size_t share = count / threads / STEP * STEP;
      const std::size_t begin = static_cast<std::size_t>(omp_get_thread_num()) * share;
      for (std::size_t i = 0; i < passes; ++i) pass(begin, share);
      _mm_sfence();
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    found = std::min(found, taken.count() / static_cast<double>(passes));
  }
  return found;
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

}  // namespace

int main(int argc, char** argv) {
  volatile double sink = 0;
  for (int argument = 1; argument < argc; ++argument) {
    const std::size_t working_set = std::strtoull(argv[argument], nullptr, 10);
    const auto report = [&](const char* kind, std::size_t arrays, auto&& ordinary, auto&& streamed, double moves = 1) {
      const std::size_t count = working_set / arrays / sizeof(float) / (STEP * 64) * (STEP * 64);
      const std::size_t passes = std::max<std::size_t>(1, (std::size_t{1} << 28) / working_set);
      const double seconds = std::min(best(count, passes, ordinary), best(count, passes, streamed));
      std::printf("%s %zu %.9g\n", kind, count * arrays * sizeof(float), seconds / moves);
    };
    const auto allocate = [&] {
      std::unique_ptr<float, Free> memory(
          static_cast<float*>(std::aligned_alloc(1 << 21, ((working_set >> 21) + 1) << 21)));
      // Advice: if it is refused, pages are small
      madvise(memory.get(), working_set, MADV_HUGEPAGE);
      std::fill_n(memory.get(), working_set / sizeof(float), 1.0F);
      return memory;
    };
    const auto first = allocate(), second = allocate(), third = allocate();
    float *a = first.get(), *b = second.get(), *c = third.get();
    const auto read = [&](std::size_t at, std::size_t count) { sink = sum(a + at, count); };
    report("read", 1, read, read);
    report(
        "copy", 2, [&](std::size_t at, std::size_t count) { copy<false>(b + at, a + at, count); },
        [&](std::size_t at, std::size_t count) { copy<true>(b + at, a + at, count); });
    const auto scaled = [&](std::size_t at, std::size_t count) { scale(a + at, count); };
    report("scale", 1, scaled, scaled, 2);  // each byte is moved twice
    report(
        "triad", 3, [&](std::size_t at, std::size_t count) { triad<false>(c + at, a + at, b + at, count); },
        [&](std::size_t at, std::size_t count) { triad<true>(c + at, a + at, b + at, count); });
    report(
        "fill", 1, [&](std::size_t at, std::size_t count) { fill<false>(a + at, count); },
        [&](std::size_t at, std::size_t count) { fill<true>(a + at, count); });
  }
}
