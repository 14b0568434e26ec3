// The instruction sets that this machine may run, as three levels, and the cap that a user puts on
// it.
#pragma once

#include <optional>
#include <string_view>

namespace halftone {

/// A rung of the ladder: a machine that has one level has every level below it.
enum class Isa {
  kScalar,      ///< plain C++, every machine
  kAvx2,        ///< AVX2, FMA and F16C, 256-bit registers saved by the operating system
  kAvx512Vnni,  ///< AVX-512 F, BW, VL, DQ and VNNI, 512-bit registers saved by the operating system
};

inline constexpr Isa kAllIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512Vnni};

/// "scalar", "avx2", "avx512vnni": the names that HALFTONE_ISA takes.
std::string_view to_string(Isa isa);

/// The level of that name, or nothing.
std::optional<Isa> try_parse_isa(std::string_view name);

/// What CPUID and XCR0 say. A CPU that has AVX-512 under an operating system that does not save its registers
/// is not kAvx512Vnni: such a kernel would compute with registers that another thread overwrites.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512dq = false;
  bool avx512vnni = false;
  bool os_saves_ymm = false;  ///< XCR0 bits 1 and 2
  bool os_saves_zmm = false;  ///< XCR0 bits 5, 6 and 7 too
};

/// Asks this CPU; all false if it is not an x86.
CpuFeatures detect_cpu_features();

/// The highest rung that these features carry.
Isa isa_of(const CpuFeatures& features);

/// The highest level of this machine, without any cap. Asked once.
Isa machine_isa();

/// `machine` capped by `cap`, which is the text of HALFTONE_ISA (nullptr or empty: no cap).
/// Throws kInvalidArgument for an unknown name and kUnsupported for a level above `machine`: a run that was
/// asked to measure one level must never silently measure another.
Isa capped_isa(Isa machine, const char* cap);

/// machine_isa() under the environment's HALFTONE_ISA, read at each call.
Isa active_isa();

}  // namespace halftone
