// Gives libFuzzer, which Atheris holds, the coverage of libraries that GCC has compiled with
// -fsanitize-coverage=trace-pc,trace-cmp (-DCANDELABRA_COVERAGE=ON). Preloaded, so that they find
// these functions.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

constexpr int bits = 18;
constexpr size_t count = size_t{1} << bits;
// One for each hash of an address.
uint8_t counters[count];
// libFuzzer wants an address and flags for each counter.
struct Place {
  uintptr_t address;
  uintptr_t flags;
} places[count];

template <typename T>
using Compare = void (*)(T, T);
struct {
  Compare<uint8_t> one, constant_one;
  Compare<uint16_t> two, constant_two;
  Compare<uint32_t> four, constant_four;
  Compare<uint64_t> eight, constant_eight;
  void (*cases)(uint64_t, uint64_t*);
} compare;

void (*take_counters)(uint8_t*, uint8_t*);
void (*take_places)(const uintptr_t*, const uintptr_t*);

}  // namespace

extern "C" {

void __sanitizer_cov_trace_pc() {
  const auto address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++counters[address * 0x9E3779B97F4A7C15u >> (64 - bits)];
}

// Tail calls: libFuzzer tells comparisons apart by the addresses that they return to.
void __sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b) {
  if (compare.one) compare.one(a, b);
}
void __sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b) {
  if (compare.two) compare.two(a, b);
}
void __sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b) {
  if (compare.four) compare.four(a, b);
}
void __sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b) {
  if (compare.eight) compare.eight(a, b);
}
void __sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b) {
  if (compare.constant_one) compare.constant_one(a, b);
}
void __sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b) {
  if (compare.constant_two) compare.constant_two(a, b);
}
void __sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b) {
  if (compare.constant_four) compare.constant_four(a, b);
}
void __sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b) {
  if (compare.constant_eight) compare.constant_eight(a, b);
}
void __sanitizer_cov_trace_switch(uint64_t value, uint64_t* cases) {
  if (compare.cases) compare.cases(value, cases);
}
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}

// The sanitizers' libraries have empty functions of these names, which are found before those of a
// library that Python loads.
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end) {
  if (take_counters) take_counters(begin, end);
}
void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end) {
  if (take_places) take_places(begin, end);
}

// Connects the counters with the library at this path, which must be loaded. Returns how many there
// are, or 0.
size_t attach_counters(const char* libfuzzer) {
  void* const library = dlopen(libfuzzer, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return 0;
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  if (!find(take_counters, "__sanitizer_cov_8bit_counters_init") || !find(take_places, "__sanitizer_cov_pcs_init") ||
      !find(compare.one, "__sanitizer_cov_trace_cmp1") || !find(compare.two, "__sanitizer_cov_trace_cmp2") ||
      !find(compare.four, "__sanitizer_cov_trace_cmp4") || !find(compare.eight, "__sanitizer_cov_trace_cmp8") ||
      !find(compare.constant_one, "__sanitizer_cov_trace_const_cmp1") ||
      !find(compare.constant_two, "__sanitizer_cov_trace_const_cmp2") ||
      !find(compare.constant_four, "__sanitizer_cov_trace_const_cmp4") ||
      !find(compare.constant_eight, "__sanitizer_cov_trace_const_cmp8") ||
      !find(compare.cases, "__sanitizer_cov_trace_switch"))
    return 0;
  for (size_t k = 0; k < count; ++k) places[k].address = k + 1;
  take_counters(counters, counters + count);
  take_places(reinterpret_cast<uintptr_t*>(places), reinterpret_cast<uintptr_t*>(places + count));
  return count;
}

}  // extern "C"
