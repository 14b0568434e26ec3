// One suite for every recipe: each call in each state, as in AITune (expected_lifecycle.h).
#include "backend/lifecycle/expected_lifecycle.h"
#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

bool runs(BackendState state) {
  return state == BackendState::kActive || state == BackendState::kDeployed;
}

void expect_right_result(const Backend& backend, const RecipeCase& recipe) {
  for (const int64_t rows : {1, 3, 9}) {
    const at::Tensor x = test_input(rows);
    const at::Tensor expected = expected_of(recipe, x);
    const at::Tensor found = infer_one(backend, x);
    ASSERT_EQ(found.sizes(), expected.sizes());
    const double error = (found - expected).abs().max().item<double>() / expected.abs().max().item<double>();
    EXPECT_LE(error, recipe.tolerance) << recipe.name << ", " << rows << " rows";
    EXPECT_FALSE(found.requires_grad());
  }
}

using Pair = std::tuple<RecipeCase, size_t>;

std::string name_of(const testing::TestParamInfo<Pair>& info) {
  const ExpectedCall& row = expected_lifecycle()[std::get<1>(info.param)];
  std::string text = std::get<0>(info.param).name;
  for (const std::string_view part : {to_string(row.from), to_string(row.call)})
    text.append("_").append(part);
  return text;
}

class LifecycleConformance : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (recipe().name == "AotInductor" && !aoti_refusal().empty()) GTEST_SKIP() << aoti_refusal();
  }
  const RecipeCase& recipe() const { return std::get<0>(GetParam()); }
  const ExpectedCall& row() const { return expected_lifecycle()[std::get<1>(GetParam())]; }
};
std::vector<RecipeCase> all_recipes() {
  std::vector<RecipeCase> recipes = plain_recipes();
  recipes.push_back(aot_inductor_case());
  return recipes;
}
INSTANTIATE_TEST_SUITE_P(Kinds, LifecycleConformance,
                         testing::Combine(testing::ValuesIn(all_recipes()), testing::Range<size_t>(0, 30)),
                         name_of);

TEST_P(LifecycleConformance, DoesWhatIsExpected) {
  const auto made = recipe().make();
  Backend backend = in_state(made, row().from);
  ASSERT_EQ(backend.state(), row().from);
  EXPECT_EQ(backend.is_active(), row().from == BackendState::kActive);
  if (!row().to) {
    expect_error(ErrorCode::kState,
                 {backend.name(), std::string(to_string(row().from)), expected_words(row().from, row().call)},
                 [&] { make_call(backend, row().call); });
  } else if (row().call == LifecycleCall::kToDict && !made->refuse_to_save().empty()) {
    expect_error(ErrorCode::kUnsupported, {backend.name(), "cannot be saved"}, [&] { backend.to_dict(); });
  } else {
    make_call(backend, row().call);
  }
  const BackendState end = row().to.value_or(row().from);
  EXPECT_EQ(backend.state(), end) << row().says;
  EXPECT_EQ(backend.is_active(), end == BackendState::kActive);
  EXPECT_EQ(backend.device(), at::Device(at::kCPU));
  if (runs(end)) {
    expect_right_result(backend, recipe());
  } else {
    expect_error(ErrorCode::kState, {backend.name(), std::string(to_string(end))},
                 [&] { infer_one(backend, test_input()); });
  }
}

TEST(LifecycleTable, IsTheReference) {
  const auto table = lifecycle_table();
  ASSERT_EQ(table.size(), expected_lifecycle().size());
  for (const ExpectedCall& row : expected_lifecycle()) {
    const auto found = std::find_if(table.begin(), table.end(), [&](const Transition& entry) {
      return entry.from == row.from && entry.call == row.call;
    });
    ASSERT_NE(found, table.end()) << to_string(row.from) << " " << to_string(row.call);
    EXPECT_EQ(found->to, row.to) << to_string(row.from) << " " << to_string(row.call) << ": " << row.says;
    EXPECT_EQ(found->reason.empty(), row.to.has_value());
    if (row.to) continue;
    EXPECT_NE(found->reason.find(expected_words(row.from, row.call)), std::string_view::npos) << row.says;
  }
}

}  // namespace
}  // namespace halftone
