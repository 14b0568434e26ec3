#include "tune/candidates.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/scheme_table.h"
#include "halftone/ptq/static_int8.h"
#include "halftone/tune/autoquant.h"

namespace halftone {
namespace {

TuneCandidate quantized(std::string name, const QuantConfig& config) {
  return {std::move(name), quant_backend_recipe({.quantization = {}, .quantization_config = config})};
}

// Tuning races itself: the plan need not, and must leave time for the others.
TuneCandidate autoquant_candidate() {
  return {"autoquant",
          autoquant_backend_recipe(
              {.schemes = {}, .min_cosine = 0.995, .time_limit = 10, .final_comparison = false})};
}

/// `asked`: by name. Without being asked for, a model without convolutions is not calibrated, which takes
/// time.
TuneCandidate static_int8_candidate(std::string name, StaticInt8Bits bits, bool asked) {
  StaticInt8BackendConfig config;
  config.bits = bits;
  config.only_convolutions = !asked;
  return {std::move(name), static_int8_backend_recipe(config)};
}

/// `asked`: as for static_int8_candidate(). kUnsupported for backends: they are chosen by --backends.
TuneCandidate candidate_of_scheme(const NamedScheme& scheme, bool asked) {
  const SchemeEntry& entry = *scheme.entry;
  switch (entry.kind) {
    case SchemeKind::kCalibrated:
      return static_int8_candidate(scheme.name(),
                                   {.activation = entry.activation_bits, .weight = entry.weight_bits}, asked);
    case SchemeKind::kMeasured:
      return autoquant_candidate();
    case SchemeKind::kBackend:
    case SchemeKind::kFile:
      refuse_scheme(scheme.name(), entry);
    case SchemeKind::kConfig:
      break;
  }
  const QuantConfig config(scheme.name());
  if (config.is_noquant()) return {"fp32", halftone_backend_recipe()};
  return quantized(scheme.name(), config);
}

/// The schemes that are tried without being asked for, in the order of trial.
std::vector<TuneCandidate> quantized_candidates() {
  std::vector<TuneCandidate> candidates;
  for (const SchemeEntry& entry : scheme_table())
    if (entry.in_tune) candidates.push_back(candidate_of_scheme({&entry, 0}, /*asked=*/false));
  return candidates;
}

std::vector<TuneCandidate> plain_candidates() {
  return {{"eager", eager_backend_recipe()},
          {"ts", torch_script_backend_recipe()},
          {"fp32", halftone_backend_recipe()},
          {"bf16", halftone_backend_recipe({.precision = HalftoneBackendConfig::Precision::kBFloat16})}};
}

/// The names of a backend here, the short one first.
std::vector<std::string> backend_names(const BackendRecipe& recipe) {
  const std::string type = recipe.type();
  if (type == "EagerBackend") return {"eager", type};
  if (type == "TorchScriptBackend") return {"ts", type};
  if (type == "HalftoneBackend") return {"halftone", type};
  if (type == "QuantBackend") return {"quant", type};
  if (type == "AutoquantBackend") return {"autoquant", type};
  if (type == "StaticInt8Backend") return {"int8static", type};
  return {type};
}

void add_once(std::vector<TuneCandidate>& list, const TuneCandidate& candidate) {
  const bool there = std::any_of(list.begin(), list.end(),
                                 [&](const TuneCandidate& one) { return one.name == candidate.name; });
  if (!there) list.push_back(candidate);
}

/// The list once, the nearest names first.
[[noreturn]] void fail_unknown(std::string_view what, const std::string& name,
                               std::vector<std::string> known) {
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  fail(ErrorCode::kInvalidArgument, "there is no {} \"{}\"{}; known: {}", what, name,
       did_you_mean(name, known), fmt::join(nearest_first(name, known), ", "));
}

void check_backends(const std::vector<std::string>& backends, const std::vector<TuneCandidate>& all) {
  std::vector<std::string> known;
  for (const TuneCandidate& candidate : all) {
    for (const std::string& name : backend_names(*candidate.recipe)) known.push_back(name);
  }
  for (const std::string& name : backends) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_unknown("backend to tune with", name, known);
  }
}

bool is_same(const BackendRecipe& a, const BackendRecipe& b) {
  return a.type() == b.type() && a.config() == b.config();
}

}  // namespace

bool is_eager_baseline(const BackendRecipe& recipe) {
  return is_same(recipe, *eager_backend_recipe());
}

bool is_fp32_baseline(const BackendRecipe& recipe) {
  return is_same(recipe, *halftone_backend_recipe());
}

std::vector<TuneCandidate> default_candidates() {
  std::vector<TuneCandidate> all = plain_candidates();
  for (TuneCandidate& candidate : quantized_candidates()) all.push_back(std::move(candidate));
  return all;
}

std::vector<TuneCandidate> select_candidates(const std::vector<std::string>& backends,
                                             const std::vector<std::string>& schemes) {
  check_backends(backends, default_candidates());
  std::vector<TuneCandidate> pool = schemes.empty() ? default_candidates() : plain_candidates();
  for (const std::string& name : schemes)
    add_once(pool, candidate_of_scheme(named_scheme(name), /*asked=*/true));
  std::vector<TuneCandidate> selected;
  for (const TuneCandidate& candidate : pool) {
    const std::vector<std::string> names = backend_names(*candidate.recipe);
    const bool wanted =
        backends.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return std::find(backends.begin(), backends.end(), name) != backends.end();
        });
    if (wanted) selected.push_back(candidate);
  }
  return selected;
}

std::vector<TuneCandidate> candidates_to_try(const std::vector<TuneCandidate>& wanted,
                                             const Strategy& strategy) {
  const std::vector<TuneCandidate> given = wanted.empty() ? default_candidates() : wanted;
  std::vector<std::string> names;
  for (const TuneCandidate& candidate : given) {
    if (!candidate.recipe || candidate.name.empty())
      fail(ErrorCode::kInvalidArgument, "a candidate needs a name and a kind");
    if (std::find(names.begin(), names.end(), candidate.name) != names.end())
      fail(ErrorCode::kInvalidArgument, "two candidates are named \"{}\"", candidate.name);
    names.push_back(candidate.name);
  }
  if (!strategy.only.empty() && std::find(names.begin(), names.end(), strategy.only) == names.end())
    fail_unknown("candidate", strategy.only, names);
  std::vector<TuneCandidate> list;
  const auto add_baseline = [&](bool (*is_it)(const BackendRecipe&), TuneCandidate otherwise) {
    const auto found = std::find_if(given.begin(), given.end(),
                                    [&](const TuneCandidate& one) { return is_it(*one.recipe); });
    list.push_back(found != given.end() ? *found : std::move(otherwise));
  };
  add_baseline(is_eager_baseline, {"eager", eager_backend_recipe()});
  add_baseline(is_fp32_baseline, {"fp32", halftone_backend_recipe()});
  for (const TuneCandidate& candidate : given) {
    if (is_eager_baseline(*candidate.recipe) || is_fp32_baseline(*candidate.recipe)) continue;
    if (strategy.only.empty() || candidate.name == strategy.only) list.push_back(candidate);
  }
  return list;
}

}  // namespace halftone
