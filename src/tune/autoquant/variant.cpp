#include "tune/autoquant/variant.h"

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
  Entrant eager({"eager", eager_backend_kind()});
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

std::shared_ptr<Variant> Judge::judge(const std::string& name, const SchemeOfGroup& schemes) {
  for (const auto& variant : variants_) {
    // One that was freed since is built again.
    const bool usable = !variant->holds || (variant->entrant && variant->entrant->is_built());
    if (variant->schemes == schemes && usable) return variant;
  }
  const auto variant = std::make_shared<Variant>();
  variants_.push_back(variant);
  variant->name = name;
  variant->schemes = schemes;
  try {
    variant->entrant =
        std::make_shared<Entrant>(TuneCandidate{name, layerwise_backend_kind(overrides(schemes))});
    variant->entrant->build(input_.model.module, input_.layout.shape_calls, {});
    variant->entrant->validate(input_.layout.validation, expected_, {});
    const Accuracy& accuracy = *variant->entrant->row.accuracy;
    variant->cosine = accuracy.least_cosine;
    variant->holds = accuracy.nans == 0 && accuracy.least_cosine >= input_.options.least_cosine;
    if (!variant->holds) variant->entrant->release();
  } catch (const std::exception& error) {
    variant->note = short_message(error);
    variant->entrant = nullptr;
  }
  return variant;
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
  return std::max(0.0, 1 - count.result().least_cosine);
}

void Judge::keep_only(const std::vector<std::shared_ptr<Variant>>& kept) {
  for (const auto& variant : variants_) {
    if (std::find(kept.begin(), kept.end(), variant) == kept.end() && variant->entrant)
      variant->entrant->release();
  }
}

}  // namespace halftone::aq
