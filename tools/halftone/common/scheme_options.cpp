#include "common/scheme_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/command_line.h"

namespace halftone::cli {

namespace {

QuantConfig with_field(const QuantConfig& config, const std::vector<std::string>& names, int value,
                       const char* option) {
  nlohmann::json fields = nlohmann::json::parse(config.fields());
  for (const std::string& name : names) {
    if (!fields.contains(name)) continue;
    fields[name] = value;
    return parse_option([&] { return QuantConfig::of_type(config.type(), fields.dump()); });
  }
  throw UsageError(fmt::format("{}: {} has no such field", option, config.describe()));
}

}  // namespace

QuantConfig parse_scheme(const std::string& text) {
  return parse_scheme_option([&] {
    return text.starts_with("{") ? QuantConfig::from_json(text) : QuantConfig(std::string_view(text));
  });
}

void add_scheme_options(CLI::App& command, SchemeOptions& options) {
  command
      .add_option("--scheme", options.scheme,
                  "How weights become low-bit (see: halftone schemes), or a config as JSON")
      ->required()
      ->type_name("S");
  command
      .add_option("--group-size", options.group_size, "Weights that share a scale, for schemes with groups")
      ->type_name("G")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command
      .add_option("--weight-bits", options.weight_bits, "Bits of a weight, for schemes that leave the choice")
      ->type_name("B")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_option("--include", options.include, "Only layers whose whole name matches")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command.add_option("--exclude", options.exclude, "Not these layers")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command
      .add_option("--override", options.overrides,
                  "Another scheme for these layers (noquant: none); may be repeated.\nThe first match "
                  "counts, and is stronger "
                  "than all else")
      ->type_name("REGEX=S")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--min-weights", options.min_weights, "Keep layers with fewer weights")
      ->type_name("N")
      ->check(CLI::Validator(check_not_negative, "NONNEGATIVE"));
  command.add_flag("--embeddings", options.embeddings,
                   "Also embeddings, where the scheme has a kernel for them");
}

QuantConfig config_of(const SchemeOptions& options) {
  QuantConfig config = parse_scheme(options.scheme);
  if (options.group_size > 0) config = with_field(config, {"group_size"}, options.group_size, "--group-size");
  if (options.weight_bits > 0)
    config = with_field(config, {"weight_bits", "bits"}, options.weight_bits, "--weight-bits");
  return config;
}

QuantizeOptions layers_of(const SchemeOptions& options) {
  QuantizeOptions layers;
  layers.include = options.include;
  layers.exclude = options.exclude;
  layers.min_weights = options.min_weights;
  layers.embeddings = options.embeddings;
  for (const std::string& text : options.overrides) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("--override: \"{}\" is not REGEX=SCHEME", text));
    }
    if (const std::string wrong = check_pattern(text.substr(0, equals)); !wrong.empty())
      throw UsageError("--override: " + wrong);
    layers.overrides.emplace_back(text.substr(0, equals), parse_scheme(text.substr(equals + 1)));
  }
  return layers;
}

}  // namespace halftone::cli
