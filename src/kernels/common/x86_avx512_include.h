// The AVX-512 intrinsics: the compiler's, or SIMDe's emulation where a file is built a second time for tests
// on machines that lack AVX-512 (HALFTONE_EMULATE_AVX512, compiled for AVX2 only).
#pragma once

#if defined(HALFTONE_EMULATE_AVX512)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#define HALFTONE_AVX512_NAME(name) name##_emulated
#else
#include <immintrin.h>
#define HALFTONE_AVX512_NAME(name) name
#endif
