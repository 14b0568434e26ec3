#include "graph/aten/torch_errors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "base/errors.h"
#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

[[noreturn]] void fail_in_torch() {
  TORCH_CHECK(false, "sizes differ");
}

TEST(TorchErrors, MessagesAreWithoutABacktrace) {
  try {
    fail_in_torch();
  } catch (const std::exception& error) {
    EXPECT_EQ(error_text(error), "sizes differ");
  }
  EXPECT_EQ(error_text(std::runtime_error("plain")), "plain");
}

// unflatten repeats the message of the error that it caught, with the backtrace in it.
TEST(TorchErrors, MessagesAreWithoutTheBacktraceOfAnErrorThatTheyRepeat) {
  try {
    at::zeros({4}).unflatten(0, {-2, 2});
    FAIL() << "unflatten took a negative size";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("Exception raised from"));  // or there is nothing to test
    EXPECT_THAT(error_text(error), HasSubstr("invalid shape dimension -2"));
    EXPECT_THAT(error_text(error), Not(HasSubstr("Exception raised from")));
    EXPECT_THAT(error_text(error), Not(HasSubstr("frame #")));
  }
  EXPECT_EQ(error_text(std::runtime_error("a\nException raised from f.cpp:1\nframe #0: f\nb\n")), "a\nb");
}

TEST(TorchErrors, APlaceKeepsTheCodesOfOurOwn) {
  const auto at_place = [](const auto& action) {
    return [action] {
      try {
        action();
      } catch (const std::exception&) {
        rethrow_at("here", ErrorCode::kInternal);
      }
    };
  };
  EXPECT_EQ(message_of(ErrorCode::kGuard, at_place([] { fail(ErrorCode::kGuard, "too long"); })),
            "here: too long");
  EXPECT_EQ(message_of(ErrorCode::kInternal, at_place([] { fail_in_torch(); })), "here: sizes differ");
  EXPECT_EQ(message_of(ErrorCode::kInternal, at_place([] { throw std::out_of_range("no"); })), "here: no");
}

TEST(TorchErrors, AFileIsToBlameForWhatTorchRefuses) {
  for (const OwnErrors own : {OwnErrors::kAsTheyAre, OwnErrors::kAboutTheFile}) {
    EXPECT_EQ(message_of(ErrorCode::kCorruptFile,
                         [&] {
                           guarded(
                               "a.pt2", [] { fail_in_torch(); }, own);
                         }),
              "a.pt2: sizes differ");
    EXPECT_THAT(message_of(ErrorCode::kCorruptFile,
                           [&] {
                             guarded(
                                 "a.pt2", []() -> int { throw std::bad_alloc(); }, own);
                           }),
                HasSubstr("a.pt2: not enough memory"));
    EXPECT_EQ(message_of(ErrorCode::kInternal,
                         [&] {
                           guarded(
                               "a.pt2", []() -> int { throw std::out_of_range("at"); }, own);
                         }),
              "a.pt2: at");
  }
  EXPECT_EQ(guarded("a.pt2", [] { return 3; }), 3);
}

TEST(TorchErrors, ErrorsOfOurOwnAreAboutTheFileWhereAskedFor) {
  const auto refuse = [] { fail(ErrorCode::kInvalidArgument, "no graph"); };
  EXPECT_EQ(message_of(ErrorCode::kCorruptFile, [&] { guarded("a.ht", refuse); }), "a.ht: no graph");
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { guarded("a.pt2", refuse, OwnErrors::kAsTheyAre); }),
            "no graph");
  const auto named = [] { fail(ErrorCode::kIo, "a.ht: cannot be read"); };
  EXPECT_EQ(message_of(ErrorCode::kIo, [&] { guarded("a.ht", named); }), "a.ht: cannot be read");
}

TEST(TorchErrors, APlaceOfANodeNamesResultAndLayer) {
  const auto graph = parse_graph(R"(graph(%x: user "x" f32[2]) {
    %y: f32[2] = aten::relu(%x)  @ "act" "ReLU"
    return %y
  })");
  EXPECT_EQ(place_of_node(*graph->nodes().front()), "aten::relu (%y) in layer \"act\"");
}

}  // namespace
}  // namespace halftone
