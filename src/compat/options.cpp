// The options by name, and the presets.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <variant>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/cli/table.h"
#include "halftone/compat/baseline.h"

namespace halftone {
namespace {

struct OptionField {
  std::string_view name;
  std::variant<bool BaselineOptions::*, int64_t BaselineOptions::*> member;
  std::string_view what;
};

const std::vector<OptionField>& option_fields() {
  using Options = BaselineOptions;
  static const std::vector<OptionField> fields = {
      {"epilogue_fusion", &Options::epilogue_fusion,
       "activations, additions and quantized rows are made where a linear or norm writes its result"},
      {"automatic_dynamic_shapes", &Options::automatic_dynamic_shapes,
       "a second size makes one graph for all sizes"},
      {"force_parameter_static_shapes", &Options::force_parameter_static_shapes,
       "a parameter that changed its sizes is an error; off: compiled again"},
      {"recompile_limit", &Options::recompile_limit, "graphs that are kept for a module, and searches"},
      {"fuse_int_mm_with_mul", &Options::fuse_int_mm_with_mul,
       "integer products are scaled inside the kernel"},
      {"mixed_mm", &Options::mixed_mm, "weight-only products read the low-bit weights themselves"},
      {"search_kernel_parameters", &Options::search_kernel_parameters,
       "threads and optional passes are measured at the first call of a shape"},
      {"search_all_directions", &Options::search_all_directions, "that search tries combinations too"},
      {"graph_cache", &Options::graph_cache, "equal graphs are compiled once in a process"},
      {"readable_kernel_names", &Options::readable_kernel_names,
       "steps in profiles go by what they do and where"},
  };
  return fields;
}

struct NamedPreset {
  std::string_view name;
  BaselineOptions options;
};

const std::vector<NamedPreset>& named_presets() {
  static const std::vector<NamedPreset> presets = [] {
    BaselineOptions recommended;  // torchao's setter, and the two lines below it
    recommended.search_kernel_parameters = true;
    recommended.search_all_directions = true;
    recommended.fuse_int_mm_with_mul = true;
    recommended.graph_cache = true;
    recommended.readable_kernel_names = true;
    recommended.automatic_dynamic_shapes = false;
    recommended.recompile_limit = 10000;
    BaselineOptions older;
    older.epilogue_fusion = false;
    older.automatic_dynamic_shapes = false;
    older.force_parameter_static_shapes = false;
    older.recompile_limit = 10000;
    older.fuse_int_mm_with_mul = true;
    older.mixed_mm = true;
    return std::vector<NamedPreset>{{"default", {}}, {"000", recommended}, {"001", older}};
  }();
  return presets;
}

std::string value_text(const BaselineOptions& options, const OptionField& field) {
  if (const auto* flag = std::get_if<bool BaselineOptions::*>(&field.member))
    return options.**flag ? "true" : "false";
  return std::to_string(options.*std::get<int64_t BaselineOptions::*>(field.member));
}

bool parse_flag(std::string_view name, std::string_view text) {
  for (const std::string_view yes : {"true", "on", "yes", "1"})
    if (text == yes) return true;
  for (const std::string_view no : {"false", "off", "no", "0"})
    if (text == no) return false;
  fail(ErrorCode::kInvalidArgument, "baseline option {}: \"{}\" is neither true nor false", name, text);
}

int64_t parse_limit(std::string_view name, std::string_view text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || rest != end || number < 0)
    fail(ErrorCode::kInvalidArgument, "baseline option {}: \"{}\" is no integer from 0 on", name, text);
  return number;
}

}  // namespace

std::vector<std::string> baseline_presets() {
  std::vector<std::string> names;
  for (const NamedPreset& preset : named_presets()) names.emplace_back(preset.name);
  return names;
}

BaselineOptions setup_baseline(std::string_view preset) {
  for (const NamedPreset& known : named_presets())
    if (known.name == preset) return known.options;
  fail(ErrorCode::kInvalidArgument, "there is no baseline preset \"{}\"{}; presets: {}", preset,
       did_you_mean(preset, baseline_presets()), fmt::join(baseline_presets(), ", "));
}

void set_baseline_option(BaselineOptions& options, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  std::vector<std::string> names;
  for (const OptionField& field : option_fields()) names.emplace_back(field.name);
  const auto field = std::find(names.begin(), names.end(), name);
  if (field == names.end()) {
    fail(ErrorCode::kInvalidArgument, "there is no baseline option \"{}\"{}; options: {}", name,
         did_you_mean(name, names), fmt::join(names, ", "));
  }
  if (equals == std::string_view::npos)
    fail(ErrorCode::kInvalidArgument, "baseline option {}: give a value, as in \"{}=…\"", name, name);
  const std::string_view value = assignment.substr(equals + 1);
  const auto& member = option_fields()[static_cast<size_t>(field - names.begin())].member;
  if (const auto* flag = std::get_if<bool BaselineOptions::*>(&member)) {
    options.** flag = parse_flag(name, value);
  } else {
    options.*std::get<int64_t BaselineOptions::*>(member) = parse_limit(name, value);
  }
}

std::vector<BaselineOption> list_baseline_options(const BaselineOptions& options) {
  std::vector<BaselineOption> list;
  for (const OptionField& field : option_fields())
    list.push_back({std::string(field.name), value_text(options, field), std::string(field.what)});
  return list;
}

std::string describe_baseline(const BaselineOptions& options) {
  std::vector<Row> rows;
  for (const BaselineOption& option : list_baseline_options(options))
    rows.push_back({option.name, option.value, option.what});
  return render_table({{"option"}, {"value"}, {"what", Align::kLeft, Cut::kMiddle, 20}}, rows, 100);
}

}  // namespace halftone
