#include "tune/autoquant/plan_candidate.h"

#include <algorithm>
#include <map>

#include "tune/accuracy.h"
#include "tune/submodules.h"

namespace halftone::aq {
namespace {

int64_t elements_of_call(const Sample& sample) {
  int64_t sum = 0;
  for (const c10::IValue& leaf : leaves_of(sample)) sum += leaf.isTensor() ? leaf.toTensor().numel() : 0;
  return sum;
}

}  // namespace

Judge::Judge(const PlanInput& input, const std::vector<AutoquantScheme>& schemes)
    : input_(input), schemes_(schemes) {
  CandidateRun eager({"eager", eager_backend_recipe()});
  eager.build(input.model.module, input.layout.shape_calls, {});
  for (const Sample& sample : input.layout.validation) expected_.push_back(eager.answers(sample));
  if (!expected_.empty())
    eager.require_same_again(*input.model.module, input.layout.validation.front(), expected_.front());
}

LayerwiseConfig Judge::overrides(const SchemeOfGroup& schemes) const {
  std::map<size_t, std::vector<std::string>> names;
  for (size_t g = 0; g < schemes.size(); ++g) {
    for (const size_t layer : input_.model.groups[g].layers)
      names[schemes[g]].push_back(input_.model.layers[layer].info.name);
  }
  LayerwiseConfig overrides;
  for (const auto& [scheme, layers] : names) {
    if (schemes_[scheme].config) overrides.emplace_back(exact_pattern(layers), *schemes_[scheme].config);
  }
  return overrides;
}

std::shared_ptr<PlanCandidate> Judge::judge(const std::string& name, const SchemeOfGroup& schemes) {
  for (const auto& candidate : candidates_) {
    // One that was freed since is built again.
    const bool usable = !candidate->holds || (candidate->run && candidate->run->is_built());
    if (candidate->schemes == schemes && usable) return candidate;
  }
  const auto candidate = std::make_shared<PlanCandidate>();
  candidates_.push_back(candidate);
  candidate->name = name;
  candidate->schemes = schemes;
  try {
    candidate->run =
        std::make_shared<CandidateRun>(TuneCandidate{name, layerwise_backend_recipe(overrides(schemes))});
    candidate->run->build(input_.model.module, input_.layout.shape_calls, {});
    candidate->run->validate(input_.layout.validation, expected_, {});
    const Accuracy& accuracy = *candidate->run->row.accuracy;
    candidate->cosine = accuracy.min_cosine;
    candidate->holds = accuracy.nans == 0 && accuracy.min_cosine >= input_.options.min_cosine;
    if (!candidate->holds) candidate->run->release();
  } catch (const std::exception& error) {
    candidate->note = short_message(error);
    candidate->run = nullptr;
  }
  return candidate;
}

double Judge::harm_alone(size_t group, size_t scheme) {
  const auto smallest = std::min_element(
      input_.layout.validation.begin(), input_.layout.validation.end(),
      [](const Sample& a, const Sample& b) { return elements_of_call(a) < elements_of_call(b); });
  SchemeOfGroup alone(input_.model.groups.size(), 0);
  alone[group] = scheme;
  const auto module = input_.model.module->clone();
  QuantizeOptions options;
  options.overrides = overrides(alone);
  quantize_(*module, NoQuantConfig{}, options);
  Session session(module);
  Sample call = copy_of(*smallest);
  AccuracyCount count;
  count.add(expected_.at(static_cast<size_t>(smallest - input_.layout.validation.begin())).front(),
            session(std::move(call.args), std::move(call.kwargs)), {});
  return std::max(0.0, 1 - count.result().min_cosine);
}

void Judge::keep_only(const std::vector<std::shared_ptr<PlanCandidate>>& kept) {
  for (const auto& candidate : candidates_) {
    if (std::find(kept.begin(), kept.end(), candidate) == kept.end() && candidate->run)
      candidate->run->release();
  }
}

}  // namespace halftone::aq
