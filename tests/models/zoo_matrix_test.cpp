// The zoo on the halftone backend against the interpreter: every scheme on every model that has layers for
// it, every pass switched off in turn. HALFTONE_ZOO_MATRIX=full also takes each scheme without each pass.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
// Of the distance between quantized and fp32 results; see compare().
constexpr double kRoundingShare = 0.1;

using Results = std::vector<std::vector<c10::IValue>>;  // of calls in one session

struct Scheme {
  std::string name;
  QuantConfig config;
  bool rounds_activations = false;
};

std::vector<Scheme> all_schemes() {
  std::vector<Scheme> all{{"fp32", NoQuantConfig{}}};
  for (const halftone::Scheme& scheme : schemes()) {
    if (!scheme.config.is_noquant())
      all.push_back({scheme.names.front(), scheme.config, scheme.activations != "kept"});
  }
  return all;
}

std::vector<fs::path> zoo_models() {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(HALFTONE_ZOO)) {
    if (entry.path().extension() == ".pt2") files.insert(entry.path());
  }
  return {files.begin(), files.end()};
}

/// Two calls in one session: the second sees what the first left in buffers and arenas.
Results call_twice(const std::shared_ptr<const GraphModule>& module,
                   const std::shared_ptr<const GraphExecutor>& executor) {
  Session session(module, executor);
  Results results;
  for (int call = 0; call < 2; ++call) {
    std::vector<c10::IValue> inputs;
    for (const c10::IValue& input : module->sample_inputs)
      inputs.push_back(input.isTensor() ? c10::IValue(input.toTensor().clone()) : input);
    at::manual_seed(7);  // for models that draw random numbers
    results.push_back(session.run(inputs));
    // What a model writes to its inputs is a result too.
    results.back().insert(results.back().end(), inputs.begin(), inputs.end());
  }
  return results;
}

double largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.abs().max().item<double>();
}

/// Where both are the same NaN or infinity, there is no difference.
double difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor same = at::logical_or(x == y, at::logical_and(x.isnan(), y.isnan()));
  const at::Tensor gap = at::where(same, at::zeros_like(x), (x - y).abs());
  return gap.isnan().any().item<bool>() ? std::numeric_limits<double>::infinity() : largest(gap);
}

/// In units of the tensor's largest finite value (at least 1), what sums in another order may cost.
double order_bound(const at::Tensor& expected) {
  const double step =
      expected.scalar_type() == at::kFloat || expected.scalar_type() == at::kDouble || expected.is_complex()
          ? 1e-5
          : 2e-2;  // one step of a half or bfloat16, twice
  return step * std::max(1.0, largest(expected.to(at::kDouble).nan_to_num(0, 0, 0)));
}

/// What differs, or nothing. `fp32`: what the model gives unquantized, for schemes that round activations. A
/// last-bit difference before such a rounding may move an activation by a whole step, so these results must
/// only stay ten times nearer to the interpreter's than those are to fp32.
std::string compare(const Results& found, const Results& expected, const Results* fp32) {
  for (size_t call = 0; call < expected.size(); ++call) {
    if (found[call].size() != expected[call].size()) return "another number of results";
    for (size_t i = 0; i < expected[call].size(); ++i) {
      const c10::IValue &f = found[call][i], &e = expected[call][i];
      if (!e.isTensor()) {
        if (f != e) return fmt::format("call {}, result {} differs", call, i);
        continue;
      }
      const at::Tensor a = f.toTensor(), b = e.toTensor();
      if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
        return fmt::format("call {}, result {}: another shape or dtype", call, i);
      if (a.is_complex()) {
        if (!at::allclose(a, b, 2e-5, 2e-5, /*equal_nan=*/true))
          return fmt::format("call {}, result {}", call, i);
        continue;
      }
      const double gap = difference(a, b);
      double bound = a.is_floating_point() ? order_bound(b) : 0;
      if (fp32 != nullptr && a.is_floating_point())
        bound += kRoundingShare * difference(b, (*fp32)[call][i].toTensor());
      if (!(gap <= bound))
        return fmt::format("call {}, result {}: differs by {:.3g}, bound {:.3g}", call, i, gap, bound);
    }
  }
  return {};
}

/// One model with one scheme; nothing if no layer takes it.
class Case {
 public:
  Case(const fs::path& file, const Scheme& scheme, const Results* fp32)
      : module_(load_pt2(file.string())), name_(file.stem().string() + " " + scheme.name) {
    if (module_->sample_inputs.empty()) return;
    if (!scheme.config.is_noquant() && !try_quantize(scheme.config)) return;
    expected_ = call_twice(module_, nullptr);
    fp32_ = scheme.rounds_activations ? fp32 : nullptr;
    runs_ = true;
  }
  bool runs() const { return runs_; }
  const Results& expected() const { return expected_; }

  /// Compiled against interpreted.
  void check(const std::vector<std::string>& disabled_passes) const {
    std::string problem;
    try {
      const auto compiled = compile(module_, {.disabled_passes = disabled_passes});
      problem = compare(call_twice(module_, compiled), expected_, fp32_);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    EXPECT_EQ(problem, "") << name_ << (disabled_passes.empty() ? "" : " without " + disabled_passes[0]);
  }

 private:
  bool try_quantize(const QuantConfig& config) {
    try {
      quantize_(*module_, config);
      return true;
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("nothing to quantize") == std::string_view::npos) throw;
      return false;
    }
  }

  std::shared_ptr<GraphModule> module_;
  std::string name_;
  Results expected_;
  const Results* fp32_ = nullptr;
  bool runs_ = false;
};

bool full_matrix() {
  const char* wanted = std::getenv("HALFTONE_ZOO_MATRIX");
  return wanted != nullptr && std::string_view(wanted) == "full";
}

/// `visit` is called for each model and each scheme that it takes; returns how many of each scheme there
/// were.
std::map<std::string, int> for_each_case(const std::function<void(const Case&, const Scheme&)>& visit) {
  std::map<std::string, int> counts;
  const auto schemes = all_schemes();
  for (const fs::path& file : zoo_models()) {
    const Case plain(file, schemes[0], nullptr);
    if (!plain.runs()) continue;
    for (const Scheme& scheme : schemes) {
      const Case quantized(file, scheme, &plain.expected());
      if (!quantized.runs()) continue;
      ++counts[scheme.name];
      visit(quantized, scheme);
    }
  }
  return counts;
}

TEST(ZooMatrix, EverySchemeEqualsTheInterpreter) {
  if (!fs::exists(HALFTONE_ZOO)) GTEST_SKIP() << "no zoo: tests/models/export_zoo.py makes it";
  const auto counts = for_each_case([](const Case& each, const Scheme&) { each.check({}); });
  EXPECT_GT(counts.at("fp32"), 100);
  for (const auto& [scheme, count] : counts) EXPECT_GT(count, 10) << scheme;
  EXPECT_EQ(counts.size(), all_schemes().size());
}

TEST(ZooMatrix, EveryPassCanBeSwitchedOff) {
  if (!fs::exists(HALFTONE_ZOO)) GTEST_SKIP() << "no zoo: tests/models/export_zoo.py makes it";
  int checked = 0;
  for_each_case([&](const Case& each, const Scheme& scheme) {
    if (!full_matrix() && scheme.name != "fp32" && scheme.name != "int8dq") return;
    for (const PassInfo& pass : compile_passes()) each.check({pass.name});
    ++checked;
  });
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace halftone
