#include "simd/processor.hpp"

#if defined(__x86_64__)

#include <cpuid.h>
#include <xmmintrin.h>

#include <array>
#include <cstring>

namespace candelabra::cpu {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

std::string processor_name() {
  std::array<unsigned, 12> words{};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const part = &words[leaf * 4];
    if (!__get_cpuid(0x80000002u + leaf, &part[0], &part[1], &part[2], &part[3])) return "x86-64";
  }
  std::array<char, sizeof(words) + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof(words));
  const std::string name = text.data();
  const size_t start = name.find_first_not_of(' ');
  return start == std::string::npos ? "x86-64" : name.substr(start);
}

ProcessorFeatures processor_features() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  ProcessorFeatures words{};
  if (__get_cpuid(1, &a, &b, &c, &d)) words = {a, c, d};
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words[3] = b, words[4] = c, words[5] = d;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) words[6] = a;
  // Which registers are saved: without it, AVX-512 cannot be used.
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  words[7] = low;
  return words;
}

void set_thread_flush_denormal(bool on) {
  constexpr unsigned flush_results = 0x8000, zero_operands = 0x0040;
  const unsigned others = _mm_getcsr() & ~(flush_results | zero_operands);
  _mm_setcsr(on ? others | flush_results | zero_operands : others);
}

}  // namespace candelabra::cpu

#elif defined(__aarch64__)

#include <sys/auxv.h>

namespace candelabra::cpu {

bool has_avx2() {
  return true;
}
bool has_avx512() {
  return false;
}

std::string processor_name() {
  return "aarch64";
}

ProcessorFeatures processor_features() {
  return {static_cast<uint32_t>(getauxval(AT_HWCAP)), static_cast<uint32_t>(getauxval(AT_HWCAP2))};
}

void set_thread_flush_denormal(bool on) {
  constexpr unsigned long long flush = 1ull << 24;  // FZ of the register FPCR
  const unsigned long long others = __builtin_aarch64_get_fpcr64() & ~flush;
  __builtin_aarch64_set_fpcr64(on ? others | flush : others);
}

}  // namespace candelabra::cpu

#else
#error "candelabra-backend-cpu is for x86-64 and AArch64"
#endif
