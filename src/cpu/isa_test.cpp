#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "halftone/base/error.h"

namespace halftone {
namespace {

CpuFeatures everything() {
  return {.avx2 = true,
          .fma = true,
          .f16c = true,
          .avx512f = true,
          .avx512bw = true,
          .avx512vl = true,
          .avx512dq = true,
          .avx512vnni = true,
          .os_saves_ymm = true,
          .os_saves_zmm = true};
}

ErrorCode code_of_cap(Isa machine, const char* cap) {
  try {
    capped_isa(machine, cap);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;
}

TEST(Isa, NamesAreParsedBack) {
  for (Isa isa : kAllIsas) EXPECT_EQ(try_parse_isa(to_string(isa)), isa);
  EXPECT_FALSE(try_parse_isa("AVX2"));
  EXPECT_FALSE(try_parse_isa(""));
}

TEST(Isa, EveryMissingFeatureLowersTheLevel) {
  EXPECT_EQ(isa_of(everything()), Isa::kAvx512Vnni);
  EXPECT_EQ(isa_of({}), Isa::kScalar);
  for (bool CpuFeatures::*bit :
       {&CpuFeatures::avx512f, &CpuFeatures::avx512bw, &CpuFeatures::avx512vl, &CpuFeatures::avx512dq,
        &CpuFeatures::avx512vnni, &CpuFeatures::os_saves_zmm}) {
    CpuFeatures features = everything();
    features.*bit = false;
    EXPECT_EQ(isa_of(features), Isa::kAvx2);
  }
  for (bool CpuFeatures::*bit :
       {&CpuFeatures::avx2, &CpuFeatures::fma, &CpuFeatures::f16c, &CpuFeatures::os_saves_ymm}) {
    CpuFeatures features = everything();
    features.*bit = false;
    EXPECT_EQ(isa_of(features), Isa::kScalar);
  }
}

TEST(Isa, CapLowersAndNeverRaises) {
  EXPECT_EQ(capped_isa(Isa::kAvx2, nullptr), Isa::kAvx2);
  EXPECT_EQ(capped_isa(Isa::kAvx2, ""), Isa::kAvx2);
  EXPECT_EQ(capped_isa(Isa::kAvx2, "scalar"), Isa::kScalar);
  EXPECT_EQ(capped_isa(Isa::kAvx512Vnni, "avx2"), Isa::kAvx2);
  EXPECT_EQ(code_of_cap(Isa::kAvx2, "avx512vnni"), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of_cap(Isa::kScalar, "avx2"), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of_cap(Isa::kAvx2, "sse2"), ErrorCode::kInvalidArgument);
}

TEST(Isa, EnvironmentIsReadAtEachCall) {
  const char* before = std::getenv("HALFTONE_ISA");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("HALFTONE_ISA", "scalar", 1);
  EXPECT_EQ(active_isa(), Isa::kScalar);
  ::setenv("HALFTONE_ISA", "no-such-level", 1);
  EXPECT_THROW(active_isa(), Error);
  ::unsetenv("HALFTONE_ISA");
  EXPECT_EQ(active_isa(), machine_isa());
  if (before != nullptr) ::setenv("HALFTONE_ISA", kept.c_str(), 1);
}

// The kernel's own list is an oracle that no one here wrote: it hides features whose registers it does not
// save.
TEST(Isa, AgreesWithTheOperatingSystem) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(cpuinfo, line)) {
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  }
  if (flags.empty()) GTEST_SKIP() << "no x86 flags in /proc/cpuinfo";
  const auto has = [&](const char* name) {
    return flags.find(std::string(" ") + name + " ") != std::string::npos;
  };
  const bool avx2 = has("avx2") && has("fma") && has("f16c");
  const bool vnni =
      avx2 && has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") && has("avx512_vnni");
  EXPECT_EQ(machine_isa(), vnni ? Isa::kAvx512Vnni : avx2 ? Isa::kAvx2 : Isa::kScalar);
}

}  // namespace
}  // namespace halftone
