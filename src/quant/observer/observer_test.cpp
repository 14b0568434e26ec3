#include "halftone/ptq/observer.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <functional>
#include <limits>

#include "halftone/base/error.h"

namespace halftone {
namespace {

constexpr ObserverKind kWatching[] = {ObserverKind::kMinMax, ObserverKind::kMovingAverageMinMax,
                                      ObserverKind::kPerChannelMinMax,
                                      ObserverKind::kMovingAveragePerChannelMinMax, ObserverKind::kHistogram};

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST(Observer, NothingSeenIsAnError) {
  for (const ObserverKind kind : kWatching) {
    const auto observer = make_observer(kind);
    observer->observe(at::empty({0}, at::kFloat));
    EXPECT_FALSE(observer->has_seen());
    EXPECT_EQ(code_of([&] { observer->qparams(); }), ErrorCode::kState) << to_string(kind);
  }
}

TEST(Observer, NanIsAnErrorAndChangesNothing) {
  at::manual_seed(1);
  const at::Tensor good = at::randn({3, 8});
  at::Tensor bad = good.clone();
  bad[1][2] = std::numeric_limits<float>::quiet_NaN();
  for (const ObserverKind kind : kWatching) {
    const auto observer = make_observer(kind);
    observer->observe(good);
    const std::string before = observer->to_json();
    EXPECT_EQ(code_of([&] { observer->observe(bad); }), ErrorCode::kInvalidArgument) << to_string(kind);
    EXPECT_EQ(observer->to_json(), before) << to_string(kind);
  }
}

TEST(Observer, InfiniteElementsAreLeftOut) {
  at::manual_seed(2);
  const at::Tensor good = at::randn({3, 8});
  for (const ObserverKind kind : kWatching) {
    at::Tensor with_infinity = good.clone();
    with_infinity[1][2] = std::numeric_limits<float>::infinity();
    at::Tensor without = good.clone();
    without[1][2] = 0;  // inside of every range
    const auto a = make_observer(kind), b = make_observer(kind);
    a->observe(with_infinity);
    b->observe(without);
    EXPECT_TRUE(std::isfinite(a->qparams().scale.max().item<float>())) << to_string(kind);
    if (kind == ObserverKind::kHistogram) continue;
    EXPECT_TRUE(a->qparams().scale.equal(b->qparams().scale)) << to_string(kind);
  }
}

TEST(Observer, ChannelsStayTheSame) {
  at::manual_seed(3);
  const auto observer = make_observer(ObserverKind::kPerChannelMinMax);
  observer->observe(at::randn({3, 8}));
  EXPECT_EQ(observer->qparams().scale.numel(), 3);
  EXPECT_EQ(code_of([&] { observer->observe(at::randn({4, 8})); }), ErrorCode::kInvalidArgument);
  ObserverConfig config(ObserverKind::kPerChannelMinMax);
  config.ch_axis = 5;
  const auto far = make_observer(config);
  EXPECT_EQ(code_of([&] { far->observe(at::randn({4, 8})); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { far->observe(at::full({4}, 1, at::kLong)); }), ErrorCode::kInvalidArgument);
}

TEST(Observer, MemoryDoesNotGrowWithTheSamples) {
  at::manual_seed(4);
  for (const ObserverKind kind : kWatching) {
    const auto observer = make_observer(kind);
    const auto bytes_after = [&](int samples) {
      for (int i = 0; i < samples; ++i) observer->observe(at::randn({16, 500}) * (1 + i % 7));
      return static_cast<double>(mallinfo2().uordblks);
    };
    const double some = bytes_after(64), many = bytes_after(448);
    EXPECT_LE(many, some * 1.05) << to_string(kind);
    EXPECT_EQ(observer->calls(), 512);
  }
}

TEST(Observer, StatisticsServeAnotherScheme) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({4, 100});
  const auto observer = make_observer(ObserverKind::kHistogram);
  observer->observe(x);
  const std::string json = observer->to_json();
  const auto restored = Observer::from_json(json);
  EXPECT_EQ(restored->to_json(), json);
  EXPECT_TRUE(restored->qparams().scale.equal(observer->qparams().scale));
  std::string symmetric = json;
  const std::string type = R"("type":"HistogramObserver")";
  symmetric.replace(symmetric.find(type), type.size(),
                    type + R"(,"dtype":"qint8","qscheme":"per_tensor_symmetric")");
  ObserverConfig config(ObserverKind::kHistogram);
  config.dtype = ConfigDType::kQInt8;
  config.qscheme = QScheme::kPerTensorSymmetric;
  const auto fresh = make_observer(config);
  fresh->observe(x);
  EXPECT_TRUE(Observer::from_json(symmetric)->qparams().scale.equal(fresh->qparams().scale));
}

TEST(Observer, BrokenStatisticsAreRefused) {
  const std::string start = R"({"observer":{"type":"MinMaxObserver"},"calls":1,)";
  for (const std::string rest : {R"("min":[1]})", R"("min":[2],"max":[1]})", R"("min":[1,2],"max":[3,4]})",
                                 R"("min":[1],"max":["NaN"]})", R"("min":[1],"max":[2],"histogram":[1]})",
                                 R"("min":[],"max":[]})", R"("min":[1],"max":[2],"x":1})"})
    EXPECT_EQ(code_of([&] { Observer::from_json(start + rest); }), ErrorCode::kCorruptFile) << rest;
  EXPECT_EQ(
      code_of([&] {
        Observer::from_json(
            R"({"observer":{"type":"HistogramObserver","bins":2},"calls":1,"min":[0],"max":[1],"histogram":[1]})");
      }),
      ErrorCode::kCorruptFile);
}

TEST(Observer, SomeWatchNothing) {
  for (const ObserverKind kind :
       {ObserverKind::kPlaceholder, ObserverKind::kNoop, ObserverKind::kReuseInput}) {
    const auto observer = make_observer(kind);
    observer->observe(at::full({3}, 1.0F));
    EXPECT_EQ(code_of([&] { observer->qparams(); }), ErrorCode::kState) << to_string(kind);
    EXPECT_EQ(Observer::from_json(observer->to_json())->to_json(), observer->to_json());
  }
}

}  // namespace
}  // namespace halftone
