#include "base/scheme_table.h"

#include <gmock/gmock.h>

#include <set>

#include "halftone/base/error.h"

namespace halftone {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string refused(ErrorCode code, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(SchemeTable, NoNameStandsForTwoSchemes) {
  std::set<std::string_view> seen;
  for (const SchemeEntry& entry : scheme_table()) {
    ASSERT_FALSE(entry.names[0].empty());
    for (const std::string_view name : {entry.names[0], entry.names[1], entry.names[2], entry.kernels_name})
      if (!name.empty()) {
        EXPECT_TRUE(seen.insert(name).second) << name;
      }
  }
}

TEST(SchemeTable, EveryEntryHasAConfigOrSaysWhatToDoInstead) {
  for (const SchemeEntry& entry : scheme_table()) {
    EXPECT_EQ(entry.kind == SchemeKind::kConfig, !entry.config.empty()) << entry.names[0];
    EXPECT_NE(entry.kind == SchemeKind::kConfig, !entry.instead.empty()) << entry.names[0];
    if (entry.kind == SchemeKind::kCalibrated) {
      EXPECT_THAT(std::string(entry.instead), HasSubstr("halftone ptq"));
    }
    if (entry.kind == SchemeKind::kFile) {
      EXPECT_THAT(std::string(entry.instead), HasSubstr("halftone generate"));
    }
    if (entry.kind == SchemeKind::kBackend) {
      EXPECT_FALSE(entry.in_tune || entry.in_autoquant);
    }
    if (entry.in_autoquant) {
      EXPECT_EQ(entry.kind, SchemeKind::kConfig) << entry.names[0];
    }
  }
}

TEST(SchemeTable, FindsEveryNameAndGroupsOfThoseThatHaveThem) {
  for (const SchemeEntry& entry : scheme_table()) {
    for (const std::string_view name : entry.names) {
      if (name.empty()) continue;
      EXPECT_EQ(named_scheme(name).entry, &entry);
      EXPECT_EQ(named_scheme(name).name(), entry.names[0]);
      const std::string with_group = std::string(name) + ":64";
      EXPECT_EQ(try_scheme(with_group).has_value(), entry.group_size > 0) << with_group;
    }
  }
  EXPECT_EQ(named_scheme("int4weightonly:64").name(), "int4wo:64");
  EXPECT_EQ(named_scheme("int4dq:256").group_size, 256);
  EXPECT_EQ(named_scheme("int4wo:32").name(), "int4wo");
  for (const char* name :
       {"", ":", ":32", "int4wo:", "int4wo:48", "int4wo:32 ", "int4wo:+32", "int4wo:32:32", "int8"})
    EXPECT_FALSE(try_scheme(name).has_value()) << name;
}

TEST(SchemeTable, RefusesWithTheReason) {
  EXPECT_THAT(
      refused(ErrorCode::kInvalidArgument, [] { named_scheme("int8w"); }),
      AllOf(HasSubstr("unknown scheme \"int8w\" (did you mean \"int8wo\"?)"), HasSubstr("int8static-7bit")));
  EXPECT_THAT(refused(ErrorCode::kInvalidArgument, [] { named_scheme("int8"); }),
              AllOf(HasSubstr("say int8dq"), Not(HasSubstr("unknown"))));
  EXPECT_THAT(refused(ErrorCode::kInvalidArgument, [] { named_scheme("int4wo:48"); }),
              HasSubstr("32, 64, 128, 256"));
  EXPECT_THAT(refused(ErrorCode::kUnsupported, [] { named_config("int8static-7bit"); }),
              AllOf(HasSubstr("needs data"), HasSubstr("--weight-bits 7 -o")));
  EXPECT_THAT(refused(ErrorCode::kUnsupported, [] { named_config("eager"); }), HasSubstr("--backends eager"));
  EXPECT_EQ(named_config("int8dq").entry->config, "Int8DynamicActivationInt8WeightConfig");
}

TEST(SchemeTable, HasTheRowsOfTorchaosBenchmark) {
  EXPECT_THAT(torchao_scheme_names(),
              ElementsAre("int8dynamic", "int8weightonly", "int4weightonly", "autoquant", "noquant"));
  for (const SchemeEntry& entry : scheme_table())
    if (entry.in_torchao > 0) {
      EXPECT_EQ(named_scheme(entry.torchao_name).entry, &entry);
    }
}

}  // namespace
}  // namespace halftone
