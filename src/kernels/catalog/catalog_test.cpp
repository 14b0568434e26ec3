#include "kernels/catalog/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "halftone/base/error.h"

namespace halftone::kernels {
namespace {

TEST(Catalog, NamesAreUniqueAndBeginWithTheirOperation) {
  std::set<std::string> names;
  for (const CatalogEntry& entry : kernel_catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(std::string_view(entry.name).starts_with(entry.operation)) << entry.name;
  }
  EXPECT_GE(names.size(), 8u);
}

TEST(Catalog, EverySchemeChoosesExactlyOneKernelAtEveryLevel) {
  for (Isa isa : kAllIsas) {
    for (std::string_view scheme : linear_schemes()) {
      const auto verdicts = explain_linear(4, 64, 512, scheme, isa);
      EXPECT_EQ(
          std::count_if(verdicts.begin(), verdicts.end(), [](const KernelVerdict& v) { return v.chosen; }), 1)
          << scheme;
      for (const KernelVerdict& v : verdicts) EXPECT_EQ(v.chosen, v.reason.empty()) << v.name;
    }
  }
}

TEST(Catalog, GroupsNeedNotDivideK) {
  for (const char* scheme : {"int4wo:64", "int4dq:64"}) {
    const auto verdicts = explain_linear(4, 64, 96, scheme, Isa::kScalar);
    EXPECT_EQ(
        std::count_if(verdicts.begin(), verdicts.end(), [](const KernelVerdict& v) { return v.chosen; }), 1);
  }
}

TEST(Catalog, OldNamesAndShortOnesAreTheSame) {
  const auto chosen = [](const char* scheme) {
    for (const KernelVerdict& v : explain_linear(16, 64, 512, scheme))
      if (v.chosen) return std::string(v.name);
    return std::string();
  };
  EXPECT_EQ(chosen("int8"), chosen("int8dq"));
  EXPECT_EQ(chosen("int8-7bit"), chosen("int8dq-7bit"));
  EXPECT_EQ(chosen("int4dq:32"), chosen("int4wo-int8act"));
  EXPECT_EQ(chosen("int4wo:32"), chosen("int4wo"));
  EXPECT_EQ(chosen("fp32"), chosen("noquant"));
  EXPECT_EQ(chosen("int8static").substr(0, 9), "int8_conv");
}

TEST(Catalog, RefusalsCarryTheirReason) {
  for (const KernelVerdict& v : explain_linear(4, 64, 96, "int4wo:64", Isa::kScalar))
    EXPECT_NE(v.chosen, !v.reason.empty()) << v.name;
  for (const char* scheme : {"int4wo:48", "int4dq:512"}) {
    try {
      explain_linear(4, 64, 96, scheme, Isa::kScalar);
      FAIL() << scheme;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    }
  }
  try {
    explain_linear(1, 1, 1, "int3", Isa::kScalar);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("int8-7bit"), std::string::npos);
  }
  try {
    explain_linear(1, 1, 1, "autoquant", Isa::kScalar);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("halftone autoquant"), std::string::npos);
  }
}

}  // namespace
}  // namespace halftone::kernels
