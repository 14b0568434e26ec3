#include "archive/gguf/gguf_describe.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "archive/bytes/terminal_text.h"
#include "archive/gguf/gguf_blocks.h"
#include "archive/gguf/gguf_format.h"

namespace halftone {
namespace {

using GgufJson = nlohmann::ordered_json;

constexpr size_t kShownElements = 8;
constexpr size_t kShownText = size_t{64} << 10;  // longer than any chat template that was seen

GgufJson number_json(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

/// The shortest decimal number that is this float: 1e-05 and not 9.999999747378752e-06.
double shortest_decimal(float number) {
  if (!std::isfinite(number)) return number;
  const std::string text = fmt::format("{}", number);
  double result = number;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

/// `whole` becomes false if something is left out.
GgufJson value_json(const GgufValue& value, bool& whole) {
  if (value.is_array()) {
    auto list = GgufJson::array();
    for (const GgufValue& element : value.elements(kShownElements))
      list.push_back(value_json(element, whole));
    whole = whole && value.size() <= kShownElements;
    return list;
  }
  if (const auto text = value.try_string()) {
    whole = whole && text->size() <= kShownText;
    return utf8_text(text->substr(0, kShownText));
  }
  if (const auto flag = value.try_bool()) return *flag;
  if (const auto integer = value.try_int()) return *integer;
  if (const auto integer = value.try_uint()) return *integer;
  const double number = value.try_number().value_or(0);
  const bool single = value.type() == GgufValueType::kFloat32;
  return number_json(single ? shortest_decimal(static_cast<float>(number)) : number);
}

std::string text_at(const GgufReader& file, std::string_view key) {
  const GgufValue* value = file.try_value(key);
  const auto text = value == nullptr ? std::nullopt : value->try_string();
  return text ? utf8_text(text->substr(0, kShownText)) : std::string();
}

/// Some architectures have an array with a number for each layer: taken where all are equal.
std::optional<int64_t> integer_at(const GgufReader& file, const std::string& key) {
  const GgufValue* value = file.try_value(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return value->try_int();
  const auto elements = value->elements();
  const auto first = elements.empty() ? std::nullopt : elements.front().try_int();
  const bool equal = std::all_of(elements.begin(), elements.end(),
                                 [&](const GgufValue& element) { return element.try_int() == first; });
  return equal ? first : std::nullopt;
}

void describe_model(const GgufReader& file, GgufDescription& model) {
  model.architecture = text_at(file, "general.architecture");
  model.name = text_at(file, "general.name");
  const auto of_architecture = [&](const char* key) {
    return integer_at(file, fmt::format("{}.{}", model.architecture, key));
  };
  model.context_length = of_architecture("context_length");
  model.layers = of_architecture("block_count");
  model.heads = of_architecture("attention.head_count");
  model.kv_heads = of_architecture("attention.head_count_kv");
  model.width = of_architecture("embedding_length");
  model.feed_forward_length = of_architecture("feed_forward_length");
  model.tokenizer = text_at(file, "tokenizer.ggml.model");
  model.has_chat_template = file.has("tokenizer.chat_template");
  if (const GgufValue* tokens = file.try_value("tokenizer.ggml.tokens");
      tokens != nullptr && tokens->is_array())
    model.vocabulary = static_cast<int64_t>(tokens->size());
  const auto parts = integer_at(file, "split.count");
  if (!parts || *parts <= 1) return;
  model.split_count = parts;
  if (const auto index = integer_at(file, "split.no"); index && *index >= 0 && *index < *parts)
    model.split_number = *index + 1;
}

void describe_tensors(const GgufReader& file, GgufDescription& model) {
  std::map<uint32_t, GgufDescription::TypeTotal> types;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    model.tensors.push_back(
        {utf8_text(tensor.name), ggml_type_text(tensor.type), tensor.shape(), tensor.values, bytes});
    const GgmlFormat* format = try_ggml_format(tensor.type);
    GgufDescription::TypeTotal& total = types[tensor.type];
    total.type = ggml_type_text(tensor.type);
    total.readable = format != nullptr && format->readable;
    total.tensors += 1;
    total.bytes += bytes;
    model.tensor_bytes += bytes;
    // A type of unknown size may claim any number of values.
    total.parameters += std::min(tensor.values, INT64_MAX - total.parameters);
    model.parameters += std::min(tensor.values, INT64_MAX - model.parameters);
  }
  for (auto& [number, total] : types) model.types.push_back(std::move(total));
  std::stable_sort(model.types.begin(), model.types.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

}  // namespace

bool is_gguf(std::string_view head) {
  return head.starts_with(kGgufMagic) || head.starts_with(kGgufMagicBigEndian);
}

GgufDescription describe(const GgufReader& file) {
  GgufDescription model;
  model.version = static_cast<int>(file.version());
  model.file_bytes = static_cast<int64_t>(file.file()->bytes().size());
  model.alignment = static_cast<int64_t>(file.alignment());
  describe_model(file, model);
  describe_tensors(file, model);
  for (const GgufEntry& entry : file.metadata()) {
    bool whole = true;
    std::string json = value_json(entry.value, whole).dump();
    model.metadata.push_back({std::string(entry.key), entry.value.describe_type(), std::move(json), whole});
  }
  return model;
}

GgufDescription describe_gguf(const std::string& path) {
  return describe(GgufReader::open(path));
}

}  // namespace halftone
