#include "cpu/isa.h"

#include <cstdint>
#include <cstdlib>

#include "base/errors.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halftone {
namespace {

#if defined(__x86_64__)
// XGETBV by its bytes would need -mxsave as an intrinsic; the mnemonic needs no flag.
uint64_t read_xcr0() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

constexpr bool has_bit(uint32_t word, int bit) {
  return (word >> bit & 1u) != 0;
}
#endif

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512Vnni:
      return "avx512vnni";
  }
  return "unknown";
}

std::optional<Isa> try_parse_isa(std::string_view name) {
  for (Isa isa : kAllIsas) {
    if (to_string(isa) == name) return isa;
  }
  return std::nullopt;
}

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.fma = has_bit(ecx, 12);
  features.f16c = has_bit(ecx, 29);
  const bool osxsave = has_bit(ecx, 27);
  if (osxsave) {
    const uint64_t xcr0 = read_xcr0();
    features.os_saves_ymm = (xcr0 & 0x06) == 0x06;
    features.os_saves_zmm = (xcr0 & 0xe6) == 0xe6;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avx2 = has_bit(ebx, 5);
  features.avx512f = has_bit(ebx, 16);
  features.avx512dq = has_bit(ebx, 17);
  features.avx512bw = has_bit(ebx, 30);
  features.avx512vl = has_bit(ebx, 31);
  features.avx512vnni = has_bit(ecx, 11);
#endif
  return features;
}

Isa isa_of(const CpuFeatures& f) {
  const bool avx2 = f.avx2 && f.fma && f.f16c && f.os_saves_ymm;
  if (!avx2) return Isa::kScalar;
  const bool avx512 = f.avx512f && f.avx512bw && f.avx512vl && f.avx512dq && f.avx512vnni && f.os_saves_zmm;
  return avx512 ? Isa::kAvx512Vnni : Isa::kAvx2;
}

Isa machine_isa() {
  static const Isa isa = isa_of(detect_cpu_features());
  return isa;
}

Isa capped_isa(Isa machine, const char* cap) {
  if (cap == nullptr || *cap == '\0') return machine;
  const std::optional<Isa> isa = try_parse_isa(cap);
  if (!isa) {
    fail(ErrorCode::kInvalidArgument, "HALFTONE_ISA is \"{}\"; it takes scalar, avx2 or avx512vnni", cap);
  }
  if (*isa > machine) {
    fail(ErrorCode::kUnsupported, "HALFTONE_ISA asks for {}, but this machine has only {}", cap,
         to_string(machine));
  }
  return *isa;
}

Isa active_isa() {
  return capped_isa(machine_isa(), std::getenv("HALFTONE_ISA"));
}

}  // namespace halftone
