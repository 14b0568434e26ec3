#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "backend/module_function.h"
#include "graph/run/interpreter.h"
#include "graph/test_support.h"
#include "halftone/compile/compilers.h"

namespace halftone {
namespace {

using testing::Contains;
using testing::Not;

CompiledFunction do_nothing(const std::shared_ptr<GraphModule>&, const std::vector<c10::IValue>&,
                            const CompilerOptions&) {
  return [](std::vector<c10::IValue> inputs) { return inputs; };
}

std::vector<std::string> names(const std::vector<CompilerInfo>& infos) {
  std::vector<std::string> all;
  for (const CompilerInfo& info : infos) all.push_back(info.name);
  return all;
}

TEST(Registry, KnowsTheBackendsThatAreBuiltIn) {
  const auto usual = names(list_compilers());
  for (const char* name : {"eager", "ts", "halftone"}) EXPECT_THAT(usual, Contains(name));
  for (const char* name :
       {"eager_noexcept", "relu_compile_error", "relu_runtime_error", "relu_accuracy_error"})
    EXPECT_THAT(usual, Not(Contains(name)));
  EXPECT_TRUE(std::is_sorted(usual.begin(), usual.end()));
  const auto all = names(list_compilers({}));
  EXPECT_GT(all.size(), usual.size());
  EXPECT_THAT(all, Contains("relu_runtime_error"));
  EXPECT_THAT(names(list_compilers({"legacy"})), Not(Contains("ts")));
  for (const CompilerInfo& info : list_compilers({})) EXPECT_FALSE(info.what.empty()) << info.name;
}

TEST(Registry, GivesBackWhatWasRegistered) {
  register_compiler({"registry_test_own", {"experimental"}, "of this test"}, do_nothing);
  const auto function = lookup_compiler("registry_test_own")(nullptr, {}, {});
  EXPECT_EQ(function({c10::IValue(3)}).at(0).toInt(), 3);
  EXPECT_THAT(names(list_compilers()), Not(Contains("registry_test_own")));
  EXPECT_THAT(names(list_compilers({})), Contains("registry_test_own"));
}

TEST(Registry, RefusesDuplicatesAndWhatHasNoNameOrCompiler) {
  expect_error(ErrorCode::kInvalidArgument, {"\"eager\"", "already"}, [] {
    register_compiler({"eager", {}, ""}, do_nothing);
  });
  expect_error(ErrorCode::kInvalidArgument, {"name"}, [] { register_compiler({"", {}, ""}, do_nothing); });
  expect_error(ErrorCode::kInvalidArgument, {"\"empty\"", "no compiler"}, [] {
    register_compiler({"empty", {}, ""}, nullptr);
  });
}

TEST(Registry, NamesTheNearestFirstWhereANameIsUnknown) {
  const std::string message = message_of(ErrorCode::kNotFound, [] { lookup_compiler("haltone"); });
  EXPECT_NE(message.find("no backend \"haltone\"; there are halftone, "), std::string::npos) << message;
  EXPECT_NE(message.find("relu_runtime_error"), std::string::npos) << message;
}

TEST(Registry, ServesManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> registered{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i, &registered] {
      for (int k = 0; k < 50; ++k) {
        // Each name is wanted by two threads: one of them gets it.
        try {
          register_compiler({fmt::format("threads_{}_{}", i / 2, k), {"experimental"}, "x"}, do_nothing);
          ++registered;
        } catch (const Error&) {
        }
        lookup_compiler(fmt::format("threads_{}_{}", i / 2, k))(nullptr, {}, {});
        list_compilers({});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered, 200);
}

}  // namespace
}  // namespace halftone
