#include "quant/select/layer_chooser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/cli/message.h"
#include "halftone/quant/weight_format.h"
#include "quant/select/left_alone.h"

namespace halftone {
namespace {

constexpr size_t kMaxListed = 12;  // layers that a message names before it counts the rest

std::string list_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kMaxListed; ++i) text += "\n  " + lines[i];
  if (lines.size() > kMaxListed) text += fmt::format("\n  and {} more", lines.size() - kMaxListed);
  return text;
}

[[noreturn]] void fail_pattern(const std::string& role, const std::string& pattern,
                               const std::regex_error& error) {
  fail(ErrorCode::kInvalidArgument, "{} pattern \"{}\" is no regular expression: {}", role, pattern,
       error.what());
}

QuantConfig for_kind(const QuantConfig& config, std::string_view kind) {
  return kind == "embedding" ? embedding_config(config) : config;
}

}  // namespace

QuantConfig embedding_config(const QuantConfig& config) {
  if (config.as<Int8DynamicActivationInt8WeightConfig>()) return Int8WeightOnlyConfig{};
  if (auto int4 = config.as<Int4WeightOnlyConfig>()) {
    int4->activations = Int4Activations::kFloat;
    return *int4;
  }
  return config;
}

QuantConfig stored_config(const QuantConfig& config) {
  auto int4 = config.as<Int4WeightOnlyConfig>();
  if (!int4) return config;
  int4->rounding = Int4Rounding::kNearest;
  return *int4;
}

bool LayerChooser::Pattern::matches(const std::string& name) {
  try {
    const bool found = std::regex_match(name, regex);
    matched = matched || found;
    return found;
  } catch (const std::regex_error& error) {  // some patterns turn out to be too expensive only here
    fail_pattern(role, text, error);
  }
}

LayerChooser::Pattern LayerChooser::make_pattern(std::string role, const std::string& text) {
  try {
    std::regex regex(text, std::regex::ECMAScript);
    return {std::move(role), text, std::move(regex)};
  } catch (const std::regex_error& error) {
    fail_pattern(role, text, error);
  }
}

LayerChooser::LayerChooser(const QuantConfig& config, const QuantizeOptions& options)
    : config_(config), options_(options) {
  if (!options.include.empty()) include_ = make_pattern("include", options.include);
  if (!options.exclude.empty()) exclude_ = make_pattern("exclude", options.exclude);
  for (const auto& [pattern, override_config] : options.overrides) {
    overrides_.push_back(make_pattern("override", pattern));
  }
}

LayerChooser::Choice LayerChooser::choose_config(const LayerInfo& layer) {
  // Every pattern is asked, so that each knows whether it matches any layer.
  const bool included = !include_ || include_->matches(layer.name);
  const bool excluded = exclude_ && exclude_->matches(layer.name);
  std::optional<size_t> first;
  for (size_t i = 0; i < overrides_.size(); ++i) {
    if (overrides_[i].matches(layer.name) && !first) first = i;
  }
  if (first) {
    const QuantConfig& config = options_.overrides[*first].second;
    if (!config.is_noquant()) return {for_kind(config, layer.kind), {}};
    return {std::nullopt, fmt::format("override \"{}\" says noquant", overrides_[*first].text)};
  }
  if (config_.is_noquant()) return {std::nullopt, "the scheme is noquant"};
  if (!included) return {std::nullopt, fmt::format("include \"{}\" does not match", include_->text)};
  if (excluded) return {std::nullopt, fmt::format("exclude \"{}\" matches", exclude_->text)};
  const QuantConfig config = for_kind(config_, layer.kind);
  if (layer.kind == "embedding") {
    if (!options_.embeddings)
      return {std::nullopt, "embeddings are quantized only where that is asked for", true};
    if (!format_of(config)->has_embedding())
      return {std::nullopt, fmt::format("{} has no kernel for embeddings", config.describe()), true};
  }
  if (layer.n * layer.k < options_.min_weights)
    return {std::nullopt, fmt::format("fewer than {} weights", options_.min_weights)};
  if (options_.filter && !options_.filter(layer)) return {std::nullopt, "the filter says no"};
  return {config, {}};
}

LayerReport LayerChooser::keep(LayerReport report, std::string reason, bool untouched) {
  kept_.push_back(fmt::format("{}: {}", report.layer.name, reason));
  report.untouched = untouched;
  report.reason = std::move(reason);
  return report;
}

LayerReport LayerChooser::choose(const LayerInfo& layer, const LayerState& state) {
  names_.push_back(layer.name);
  LayerReport report{.layer = layer};
  Choice choice = choose_config(layer);
  if (state.already) {
    report.outcome = LayerReport::Outcome::kAlready;
    report.config = state.already;
    if (!choice.config) return report;
    // What has nothing for convolutions leaves those alone that are quantized, too.
    if (layer.kind == "convolution" && !format_of(*choice.config)->has_convolution()) return report;
    const QuantConfig asked = state.from_graph ? stored_config(*choice.config) : *choice.config;
    if (asked != *state.already) {
      fail(ErrorCode::kInvalidArgument, "{}: is quantized already as {}, and cannot become {}", layer.name,
           state.already->describe(), choice.config->describe());
    }
    ++done_;
    return report;
  }
  if (!choice.config) return keep(std::move(report), std::move(choice.reason), choice.untouched);
  if (!state.obstacle.empty()) return keep(std::move(report), state.obstacle, true);
  const auto format = format_of(*choice.config);
  if (!state.convolution.empty() && !format->has_convolution())
    return keep(std::move(report), state.convolution, true);
  std::string refusal = format->refuse(layer.n, layer.k);
  if (layer.kind == "embedding" && !format->has_embedding()) {  // only an override asks for this
    refusal = fmt::format("{} has no kernel for embeddings", choice.config->describe());
  }
  if (!refusal.empty()) refused_.push_back(fmt::format("{}: {}", layer.name, refusal));
  ++done_;
  report.outcome = LayerReport::Outcome::kQuantized;
  report.config = std::move(choice.config);
  return report;
}

void LayerChooser::fail_nothing_to_do(const std::vector<LeftAlone>& left_alone) const {
  std::vector<std::string> untouched;
  for (const LeftAlone& kind : left_alone) untouched.push_back(describe(kind));
  fail(ErrorCode::kInvalidArgument, "nothing to quantize: {}{}{}",
       names_.empty() ? "the model has no linear layers" : "all layers are kept:", list_lines(kept_),
       list_lines(untouched));
}

void LayerChooser::finish(const std::vector<LeftAlone>& left_alone) const {
  std::vector<const Pattern*> patterns;
  if (include_) patterns.push_back(&*include_);
  if (exclude_) patterns.push_back(&*exclude_);
  for (const Pattern& pattern : overrides_) patterns.push_back(&pattern);
  for (const Pattern* pattern : patterns) {
    if (pattern->matched) continue;
    fail(ErrorCode::kInvalidArgument, "{} pattern \"{}\" matches none of the {}{}. They are:{}",
         pattern->role, pattern->text, counted(names_.size(), "layer"), did_you_mean(pattern->text, names_),
         list_lines(names_));
  }
  if (!refused_.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "{} cannot have the format chosen for {}; exclude {} or choose another:{}",
         refused_.size() == 1 ? "one layer" : fmt::format("{} layers", refused_.size()),
         refused_.size() == 1 ? "it" : "them", refused_.size() == 1 ? "it" : "them", list_lines(refused_));
  }
  if (done_ == 0) fail_nothing_to_do(left_alone);
}

}  // namespace halftone
