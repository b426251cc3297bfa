#include "gemm/autotune.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/choice_file.hpp"
#include "gemm/gemm_onednn.hpp"
#include "gemm/panel_gemm.hpp"
#include "gemm/threaded_gemm.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"
#include "vendor/blas.hpp"

namespace candelabra::cpu {
namespace {

constexpr size_t library_count = 4;

// The choice for one shape class, 0 while undecided. The times are for describe_gemm_choices().
struct Decision {
  std::atomic<int> chosen{0};                                    // number_of(library)
  std::array<std::atomic<float>, library_count> microseconds{};  // by GemmLibrary, 0 if not timed

  std::atomic<float>& time_of(GemmLibrary library) { return microseconds[static_cast<size_t>(library)]; }
  float time_of(GemmLibrary library) const { return microseconds[static_cast<size_t>(library)]; }
};
Decision decisions[shape_class_count];

struct Representative {
  const char* name;
  int64_t m, n, k;
  int rounds;
};
// The product that is timed for each class, with the candidates of that class only.
constexpr Representative representatives[shape_class_count] = {
    {"small", 32, 128, 128, 20}, {"narrow", 4, 1024, 1024, 8}, {"slender", 256, 10, 1024, 8},
    {"large", 256, 256, 240, 8}, {"heavy", 512, 512, 512, 8},  {"compact", 256, 128, 128, 20},
};

// Whether products are left to BLAS unless oneDNN is clearly faster, rather than the other way
// round. MKL takes slower code paths on processors that are not Intel's. Evaluated once: in a
// virtual machine CPUID traps, which takes as long as a product.
#if CANDELABRA_OPENBLAS
bool prefers_blas() {
  return true;
}
#else
bool prefers_blas() {
  static const bool is_intel = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    return b == 0x756e6547u && d == 0x49656e69u && c == 0x6c65746eu;  // "GenuineIntel"
  }();
  return is_intel;
}
#endif

GemmLibrary expected(ShapeClass shape) {
  if (shape == ShapeClass::heavy && has_amx_gemm()) return GemmLibrary::amx;
  if (shape == ShapeClass::compact) return GemmLibrary::panels;
  return prefers_blas() || !has_onednn() ? GemmLibrary::blas : GemmLibrary::onednn;
}

const char* name_of(GemmLibrary library) {
  constexpr const char* names[] = {blas_name, "oneDNN", "AMX", "panels"};
  return names[static_cast<int>(library)];
}

// A library as the number that decisions hold, of which 0 means undecided.
constexpr int number_of(GemmLibrary library) {
  return 1 + static_cast<int>(library);
}

// The number of the library that CANDELABRA_CPU_GEMM names, or 0.
int forced() {
  static const int library = [] {
    const char* text = std::getenv("CANDELABRA_CPU_GEMM");
    if (!text || !*text) return 0;
    std::string_view value = text;
    if (value == blas_setting) return number_of(GemmLibrary::blas);
    if (value == "onednn") {
      if (has_onednn()) return number_of(GemmLibrary::onednn);
      throw failure(CB_VALUE_ERROR,
                    "the environment variable CANDELABRA_CPU_GEMM is \"onednn\", but this library is built without it");
    }
    if (value == "panels") return number_of(GemmLibrary::panels);
    if (value == "amx") {
      if (has_amx_gemm()) return number_of(GemmLibrary::amx);
      throw failure(CB_VALUE_ERROR,
                    "the environment variable CANDELABRA_CPU_GEMM is \"amx\", but this processor has no AMX units "
                    "for bfloat16, or the system does not let us use them");
    }
    throw failure(CB_VALUE_ERROR,
                  "the environment variable CANDELABRA_CPU_GEMM must be \"%s\", \"onednn\", \"amx\" or \"panels\", "
                  "but is \"%s\"",
                  blas_setting, text);
  }();
  return library;
}

// Whether the environment does not name another library.
bool may_use(GemmLibrary library) {
  return forced() == 0 || is_named(library);
}

// Lowers `least` to the time of one call: the minimum of some rounds is the least disturbed time.
template <typename F>
void time_call(float& least, F&& multiply) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  multiply();
  least = std::min(least, std::chrono::duration<float, std::micro>(clock::now() - start).count());
}

// A candidate must be this much faster than the expected one: noise should not change results from
// run to run.
constexpr float required_advantage = 0.85f;

GemmLibrary measure(Decision& decision, const Representative& shape) {
  Scratch<float> a(shape.m * shape.k), b(shape.n * shape.k), c(shape.m * shape.n);
  for (int64_t i = 0; i < shape.m * shape.k; ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (int64_t i = 0; i < shape.n * shape.k; ++i) b[i] = static_cast<float>(i % 5) - 2;
  Gemm<float> problem{false,   true,     shape.m, shape.n, shape.k,  1,      a.data(),
                      shape.k, b.data(), shape.k, 0,       c.data(), shape.n};
  const Cuts cuts = cuts_of(shape.m, shape.n, shape.k, true);
  const auto by_blas = [&] { multiply_by_library(problem, cuts, gemm_by_blas); };
  const auto by_onednn = [&] { multiply_by_library(problem, cuts, gemm_by_onednn); };
  by_blas();  // warm-up: code generation and page faults
  by_onednn();
  constexpr float never = std::numeric_limits<float>::infinity();
  float blas = never, onednn = never;
  // The libraries alternate, so that a disturbance hits both.
  for (int round = 0; round < shape.rounds; ++round) {
    time_call(blas, by_blas);
    if (has_onednn()) time_call(onednn, by_onednn);
  }
  decision.time_of(GemmLibrary::blas) = blas;
  decision.time_of(GemmLibrary::onednn) = has_onednn() ? onednn : 0;
  const float libraries = std::min(blas, onednn);
  // Times our own product of this class, and returns whether it stands.
  const auto own_stands = [&](GemmLibrary own, auto&& multiply) {
    float least = never;
    for (int round = 0; round < shape.rounds; ++round) time_call(least, multiply);
    decision.time_of(own) = least;
    return libraries >= required_advantage * least;
  };
  // Timed alone: AMX does not reach its clock right after other work.
  if (shape_class(shape.m, shape.n, shape.k) == ShapeClass::heavy && has_amx_gemm() &&
      own_stands(GemmLibrary::amx, [&] { amx_gemm(problem); }))
    return GemmLibrary::amx;
  if (&decision == &decisions[static_cast<int>(ShapeClass::compact)] &&
      own_stands(GemmLibrary::panels, [&] { multiply_in_parts<float>(problem, cuts, panel_gemm); }))
    return GemmLibrary::panels;
  if (prefers_blas()) return onednn < required_advantage * blas ? GemmLibrary::onednn : GemmLibrary::blas;
  return blas < required_advantage * onednn ? GemmLibrary::blas : GemmLibrary::onednn;
}

// The library by its name, if it can compute products of this class here.
std::optional<GemmLibrary> usable(ShapeClass shape, const std::string& name) {
  for (const GemmLibrary library : {GemmLibrary::blas, GemmLibrary::onednn, GemmLibrary::amx, GemmLibrary::panels}) {
    if (name != name_of(library)) continue;
    if (library == GemmLibrary::amx && (shape != ShapeClass::heavy || !has_amx_gemm())) return {};
    if (library == GemmLibrary::onednn && !has_onednn()) return {};
    if (library == GemmLibrary::panels && shape != ShapeClass::compact) return {};
    return library;
  }
  return {};
}

// What this machine has chosen before, or what is measured now.
GemmLibrary settled(ShapeClass shape) {
  const Representative& representative = representatives[static_cast<int>(shape)];
  if (const auto stored = usable(shape, stored_choice(representative.name))) return *stored;
  const GemmLibrary measured = measure(decisions[static_cast<int>(shape)], representative);
  const char* const chosen = name_of(measured);
  if (const auto standing = usable(shape, store_choice(representative.name, chosen, false))) return *standing;
  store_choice(representative.name, chosen, true);  // in place of what is no choice
  return measured;
}

}  // namespace

ShapeClass shape_class(int64_t m, int64_t n, int64_t k) {
  // In double: the product of the sizes may exceed 64 bits.
  constexpr double few_operations = 1 << 20, few_elements = 1 << 17;
  constexpr int64_t short_side = 8, few_columns = 32;
  double rows = static_cast<double>(m), columns = static_cast<double>(n), inner = static_cast<double>(k);
  if (rows * columns * inner <= few_operations && rows * inner + inner * columns + rows * columns <= few_elements)
    return ShapeClass::small;
  if (std::min(m, n) <= short_side) return ShapeClass::narrow;
  if (n <= few_columns) return ShapeClass::slender;
  return suits_amx_gemm(m, n, k) ? ShapeClass::heavy : ShapeClass::large;
}

GemmLibrary choose_gemm_library(ShapeClass shape) {
  Decision& decision = decisions[static_cast<int>(shape)];
  int chosen = decision.chosen.load(std::memory_order_relaxed);
  if (chosen) [[likely]]
    return static_cast<GemmLibrary>(chosen - 1);
  chosen = forced();
  if (chosen == number_of(GemmLibrary::amx) && shape != ShapeClass::heavy) chosen = 0;
  if (chosen == number_of(GemmLibrary::panels) && shape != ShapeClass::compact) chosen = 0;
  if (chosen == 0) chosen = number_of(settled(shape));
  // Two threads may measure at once: the first choice stands.
  int undecided = 0;
  if (!decision.chosen.compare_exchange_strong(undecided, chosen)) chosen = undecided;
  return static_cast<GemmLibrary>(chosen - 1);
}

bool is_named(GemmLibrary library) {
  return forced() == number_of(library);
}

bool chooses_panels(const Gemm<float>& p) {
  if (is_tiny_product(p)) return may_use(GemmLibrary::panels);
  // Large products are for AMX, if it is available.
  if (!suits_panel_gemm(p) || (shape_class(p.m, p.n, p.k) == ShapeClass::heavy && may_use_amx())) return false;
  return choose_gemm_library(ShapeClass::compact) == GemmLibrary::panels;
}

bool chooses_panels(const Gemm<double>& p) {
  return is_tiny_product(p) && may_use(GemmLibrary::panels);
}

bool may_use_amx() {
  return has_amx_gemm() && may_use(GemmLibrary::amx);
}

std::string describe_gemm_choices() {
  std::string lines;
  for (int i = 0; i < shape_class_count; ++i) {
    const Decision& decision = decisions[i];
    int chosen = decision.chosen;
    char line[200];
    if (!chosen)
      std::snprintf(line, sizeof line, "float32 matmul, %s: not chosen yet (measured at first use; expected: %s)\n",
                    representatives[i].name, name_of(expected(static_cast<ShapeClass>(i))));
    else if (decision.time_of(GemmLibrary::blas) == 0)
      std::snprintf(line, sizeof line, "float32 matmul, %s: %s (%s)\n", representatives[i].name,
                    name_of(static_cast<GemmLibrary>(chosen - 1)),
                    forced() == chosen ? "CANDELABRA_CPU_GEMM" : "measured by an earlier process");
    else
      std::snprintf(line, sizeof line,
                    "float32 matmul, %s: %s (measured on %lldx%lldx%lld: %s %.1f us, oneDNN %.1f us)\n",
                    representatives[i].name, name_of(static_cast<GemmLibrary>(chosen - 1)),
                    static_cast<long long>(representatives[i].m), static_cast<long long>(representatives[i].n),
                    static_cast<long long>(representatives[i].k), blas_name,
                    static_cast<double>(decision.time_of(GemmLibrary::blas)),
                    static_cast<double>(decision.time_of(GemmLibrary::onednn)));
    lines += line;
    for (const GemmLibrary library : {GemmLibrary::amx, GemmLibrary::panels})
      if (const float time = decision.time_of(library); time != 0) {
        std::snprintf(line, sizeof line, ", %s %.1f us)\n", name_of(library), static_cast<double>(time));
        lines.replace(lines.size() - 2, 2, line);
      }
  }
  return lines;
}

}  // namespace candelabra::cpu
