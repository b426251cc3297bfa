// What the processor is and can do. Runs on every processor: it is asked before other code runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// Whether it runs the loops for AVX2, or those for AVX-512. On processors other than x86-64, SIMDe
// makes the former run everywhere, and there are none of the latter.
bool has_avx2();
bool has_avx512();

// The name that the processor gives itself, such as "AMD EPYC 9B45", or that of its architecture.
std::string processor_name();

// Family, model and features of the processor, as the operating system lets programs use them: what
// machine code made here depends on.
using ProcessorFeatures = std::array<uint32_t, 8>;
ProcessorFeatures processor_features();

// Whether the calling thread treats denormal operands and results as zero.
void set_thread_flush_denormal(bool on);

}  // namespace candelabra::cpu
