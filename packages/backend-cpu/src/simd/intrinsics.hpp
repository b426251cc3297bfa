// The vector instructions that the loops are written in: those of x86-64, or, on other processors,
// SIMDe, which has functions of the same names on the instructions there.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#else
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#ifndef _MM_FROUND_NO_EXC  // which SIMDe 0.7 has under its own name only
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#endif
#endif
