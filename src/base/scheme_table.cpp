#include "base/scheme_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "base/nearest.h"

namespace halftone {

namespace {

/// Bits of one scale (32) spread over the weights that share it.
constexpr double shared_by(int weights) {
  return 32.0 / weights;
}
constexpr int kInputs = 4096;
constexpr int kGroup = 32;
constexpr int kGroupSizes[] = {32, 64, 128, 256};
constexpr size_t kTorchaoRows = 5;

constexpr std::string_view kInt8Weights = "int8, a scale per output";
constexpr std::string_view kInt4Weights = "int4, a scale per 32 inputs";
constexpr std::string_view kFloat8Weights = "float8 e4m3, a scale per output";

constexpr SchemeEntry kSchemeTable[] = {
    {.names = {"int8wo", "int8weightonly"},
     .config = "Int8WeightOnlyConfig",
     .weights = kInt8Weights,
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kInt8WeightOnlyLinear,
     .in_tune = true,
     .in_autoquant = true,
     .in_torchao = 2,
     .torchao_name = "int8weightonly"},
    {.names = {"int8dq", "int8dynamic"},
     .config = "Int8DynamicActivationInt8WeightConfig",
     .weights = kInt8Weights,
     .activations = "uint8 per row, at run time",
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kInt8Linear,
     .kernels_name = "int8",
     .in_tune = true,
     .in_autoquant = true,
     .in_torchao = 1,
     .torchao_name = "int8dynamic"},
    {.names = {"int8dq-7bit", "int8-7bit"},
     .config = "Int8DynamicActivationInt8WeightConfig",
     .fields = R"({"weight_bits": 7})",
     .weights = "int8 in 7 bits, a scale per output",
     .activations = "uint8 per row, at run time",
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kInt8Linear,
     .weight_bits = 7,
     .in_tune = true,
     .in_autoquant = true},
    {.names = {"int4wo", "int4weightonly"},
     .config = "Int4WeightOnlyConfig",
     .weights = kInt4Weights,
     .bits_per_weight = 4 + shared_by(kGroup),
     .kernel = SchemeKernel::kInt4WeightOnlyLinear,
     .group_size = kGroup,
     .in_tune = true,
     .in_autoquant = true,
     .in_torchao = 3,
     .torchao_name = "int4weightonly"},
    {.names = {"int4wo-int8act", "int4dq"},
     .config = "Int4WeightOnlyConfig",
     .fields = R"({"activations": "int8"})",
     .weights = kInt4Weights,
     .activations = "int8 per 32 inputs, at run time",
     .bits_per_weight = 4 + shared_by(kGroup),
     .kernel = SchemeKernel::kInt4DynamicLinear,
     .group_size = kGroup,
     .in_tune = true,
     .in_autoquant = true},
    {.names = {"bf16wo", "bf16weightonly"},
     .config = "Bf16WeightOnlyConfig",
     .weights = "bfloat16, no scales",
     .bits_per_weight = 16,
     .kernel = SchemeKernel::kBf16Linear,
     .in_autoquant = true},
    {.names = {"fp8wo", "float8weightonly"},
     .config = "Float8WeightOnlyConfig",
     .weights = kFloat8Weights,
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kFp8Linear,
     .in_tune = true,
     .in_autoquant = true},
    {.names = {"fp8dq", "float8dynamic"},
     .config = "Float8DynamicActivationFloat8WeightConfig",
     .weights = kFloat8Weights,
     .activations = "float8 e4m3 per row, at run time",
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kFp8DynamicLinear,
     .in_tune = true},
    {.names = {"noquant", "none", "fp32"},
     .config = "NoQuantConfig",
     .kernel = SchemeKernel::kFp32Linear,
     .in_torchao = 5,
     .torchao_name = "noquant"},
    {.names = {"int8static"},
     .kind = SchemeKind::kCalibrated,
     .instead = "needs data to calibrate with and is no config: call quantize_static() of "
                "halftone/ptq/static_int8.h, or run: halftone ptq MODEL --data DATA.safetensors "
                "--activation-bits 7 --weight-bits 8 -o OUT.ht",
     .weights = kInt8Weights,
     .activations = "uint8 (7 bits), calibrated",
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kInt8Conv,
     .activation_bits = 7,
     .in_tune = true},
    {.names = {"int8static-7bit"},
     .kind = SchemeKind::kCalibrated,
     .instead = "needs data to calibrate with and is no config: call quantize_static() of "
                "halftone/ptq/static_int8.h, or run: halftone ptq MODEL --data DATA.safetensors "
                "--activation-bits 7 --weight-bits 7 -o OUT.ht",
     .weights = "int8 in 7 bits, a scale per output",
     .activations = "uint8 (7 bits), calibrated",
     .bits_per_weight = 8 + shared_by(kInputs),
     .kernel = SchemeKernel::kInt8Conv,
     .activation_bits = 7,
     .weight_bits = 7,
     .in_tune = true},
    {.names = {"autoquant"},
     .kind = SchemeKind::kMeasured,
     .instead = "chooses a scheme for each layer by measuring and is no config: call autoquant() of "
                "halftone/tune/autoquant.h, or run: halftone autoquant MODEL -o OUT.ht",
     .weights = "for each layer the fastest",
     .activations = "see: halftone autoquant",
     .in_tune = true,
     .in_torchao = 4,
     .torchao_name = "autoquant"},
    {.names = {"file"},
     .kind = SchemeKind::kFile,
     .instead = "keeps the 4-bit weights of a language model's file as they are: halftone generate "
                "MODEL.gguf --scheme file",
     .weights = "4-bit ones as in the file, others bfloat16",
     .bits_per_weight = 6},
    {.names = {"file-int8act"},
     .kind = SchemeKind::kFile,
     .instead = "keeps the 4-bit weights of a language model's file as they are: halftone generate "
                "MODEL.gguf --scheme "
                "file-int8act",
     .weights = "4-bit ones as in the file, others bfloat16",
     .activations = "int8 per 32 inputs, at run time",
     .bits_per_weight = 6},
    {.names = {"bf16"},
     .kind = SchemeKind::kBackend,
     .instead =
         "computes the whole model in bfloat16 and is no scheme: halftone tune tries it by itself, or with "
         "--backends halftone; for weights alone there is bf16wo"},
    {.names = {"eager"},
     .kind = SchemeKind::kBackend,
     .instead = "is a backend and no scheme: halftone tune --backends eager, halftone run --backend eager"},
    {.names = {"ts"},
     .kind = SchemeKind::kBackend,
     .instead = "is a backend and no scheme: halftone tune --backends ts, halftone run --backend ts"},
};

bool has_name(const SchemeEntry& entry, std::string_view name) {
  return !name.empty() && std::ranges::find(entry.names, name) != entry.names.end();
}

/// The number behind the colon where it is a group size; 0 where it is none.
int group_size_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::ranges::find(kGroupSizes, number) != std::end(kGroupSizes) ? number : 0;
}

/// Nothing if it is not "NAME:…" of a scheme with groups.
const SchemeEntry* try_entry_with_groups(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == name.npos) return nullptr;
  const auto found = try_scheme(name.substr(0, colon));
  return found && found->entry->group_size > 0 ? found->entry : nullptr;
}

[[noreturn]] void fail_unknown_scheme(std::string_view name) {
  for (const SchemeEntry& entry : kSchemeTable) {
    if (!entry.kernels_name.empty() && entry.kernels_name == name)
      fail(ErrorCode::kInvalidArgument,
           "\"{}\" is the name that halftone kernels has for {}: say {} here, or int8wo for weights alone",
           name, entry.names[0], entry.names[0]);
  }
  if (const SchemeEntry* entry = try_entry_with_groups(name))
    fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\": the group size of {} is one of {}", name,
         entry->names[0], fmt::join(kGroupSizes, ", "));
  const std::vector<std::string> known = scheme_names();
  fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\"{}; known: {}", name, did_you_mean(name, known),
       fmt::join(nearest_first(name, known), ", "));
}

}  // namespace

std::span<const SchemeEntry> scheme_table() {
  return kSchemeTable;
}

std::span<const int> scheme_group_sizes() {
  return kGroupSizes;
}

std::string NamedScheme::name() const {
  const bool usual = group_size == 0 || group_size == entry->group_size;
  return usual ? std::string(entry->names[0]) : fmt::format("{}:{}", entry->names[0], group_size);
}

std::optional<NamedScheme> try_scheme(std::string_view name) {
  for (const SchemeEntry& entry : kSchemeTable) {
    if (has_name(entry, name)) return NamedScheme{&entry, 0};
  }
  const SchemeEntry* entry = try_entry_with_groups(name);
  const int group = entry != nullptr ? group_size_of(name.substr(name.find(':') + 1)) : 0;
  if (group == 0) return std::nullopt;
  return NamedScheme{entry, group};
}

NamedScheme named_scheme(std::string_view name) {
  if (const auto found = try_scheme(name)) return *found;
  fail_unknown_scheme(name);
}

NamedScheme named_config(std::string_view name) {
  const NamedScheme found = named_scheme(name);
  if (found.entry->kind != SchemeKind::kConfig) refuse_scheme(name, *found.entry);
  return found;
}

void refuse_scheme(std::string_view name, const SchemeEntry& entry) {
  std::vector<std::string_view> configs;
  for (const SchemeEntry& each : kSchemeTable)
    if (each.kind == SchemeKind::kConfig) configs.push_back(each.names[0]);
  fail(ErrorCode::kUnsupported, "\"{}\" {}; known configs: {}", name, entry.instead,
       fmt::join(configs, ", "));
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeEntry& entry : kSchemeTable) {
    if (entry.kind == SchemeKind::kBackend) continue;
    for (const std::string_view name : entry.names)
      if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> torchao_scheme_names() {
  std::vector<std::string> names(kTorchaoRows);
  for (const SchemeEntry& entry : kSchemeTable)
    if (entry.in_torchao > 0) names.at(static_cast<size_t>(entry.in_torchao) - 1) = entry.torchao_name;
  return names;
}

}  // namespace halftone
