#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "common/console.h"
#include "common/gguf.h"
#include "halftone/cli/gguf.h"
#include "halftone/cli/table.h"
#include "halftone/cli/terminal_text.h"

namespace halftone::cli {

namespace {

using ModelJson = nlohmann::ordered_json;

constexpr int kLongestValue = 120;  // of a value in the table, in code points

/// Nothing as "-".
std::string number_cell(const std::optional<int64_t>& number) {
  return number ? with_commas(*number) : "-";
}

std::string text_cell(const std::string& text) {
  return text.empty() ? "-" : terminal_text(text, kLongestValue);
}

std::string heads_cell(const GgufDescription& model) {
  std::string text = number_cell(model.heads);
  if (model.kv_heads && model.kv_heads != model.heads)
    text += fmt::format(" ({} for keys and values)", with_commas(*model.kv_heads));
  return text;
}

std::string vocabulary_cell(const GgufDescription& model) {
  std::string text = number_cell(model.vocabulary);
  if (!model.tokenizer.empty()) text += fmt::format(" (tokenizer {})", terminal_text(model.tokenizer, 40));
  return text;
}

std::string model_table(const GgufDescription& model) {
  std::vector<Row> rows = {{"architecture", text_cell(model.architecture)},
                           {"name", text_cell(model.name)},
                           {"context length", number_cell(model.context_length)},
                           {"layers", number_cell(model.layers)},
                           {"heads", heads_cell(model)},
                           {"width", number_cell(model.width)},
                           {"feed-forward width", number_cell(model.feed_forward_length)},
                           {"vocabulary", vocabulary_cell(model)},
                           {"chat template", model.has_chat_template ? "yes" : "no"},
                           {"parameters", with_commas(model.parameters)}};
  if (model.split_count)
    rows.push_back({"part", fmt::format("{} of {} files; the parameters are those of this file",
                                        number_cell(model.split_number), *model.split_count)});
  return render_table({{"what"}, {"value", Align::kLeft, Cut::kMiddle, 40}}, rows, kColumns);
}

std::string types_table(const GgufDescription& model) {
  std::vector<Row> rows;
  for (const GgufDescription::TypeTotal& type : model.types) {
    rows.push_back({type.type, with_commas(type.tensors), with_commas(type.parameters),
                    describe_bytes(type.bytes), type.readable ? "yes" : "no"});
  }
  rows.push_back({"all", with_commas(static_cast<int64_t>(model.tensors.size())),
                  with_commas(model.parameters), describe_bytes(model.tensor_bytes), ""});
  return render_table({{"type"},
                       {"tensors", Align::kRight},
                       {"parameters", Align::kRight},
                       {"bytes", Align::kRight},
                       {"read by Halftone"}},
                      rows, kColumns);
}

std::string tensors_table(const GgufDescription& model) {
  std::vector<Row> rows;
  for (const GgufDescription::Tensor& tensor : model.tensors) {
    rows.push_back({terminal_text(tensor.name), tensor.type,
                    fmt::format("[{}]", fmt::join(tensor.shape, ", ")), describe_bytes(tensor.bytes)});
  }
  if (rows.empty()) return "none\n";
  return render_table({{"name", Align::kLeft, Cut::kName, 24}, {"type"}, {"shape"}, {"bytes", Align::kRight}},
                      rows, kColumns);
}

/// A string without its quotes, anything else as JSON writes it.
std::string value_cell(const GgufDescription::Entry& entry) {
  const ModelJson value = ModelJson::parse(entry.json);
  const std::string text = value.is_string() ? value.get<std::string>() : entry.json;
  return terminal_text(entry.whole ? text : text + " …", kLongestValue);
}

std::string metadata_table(const GgufDescription& model) {
  std::vector<Row> rows;
  for (const GgufDescription::Entry& entry : model.metadata)
    rows.push_back({terminal_text(entry.key), entry.type, value_cell(entry)});
  if (rows.empty()) return "none\n";
  return render_table({{"key", Align::kLeft, Cut::kMiddle, 40},
                       {"type", Align::kLeft, Cut::kMiddle, 16},
                       {"value", Align::kLeft, Cut::kMiddle, 24}},
                      rows, kColumns);
}

ModelJson or_null(const std::optional<int64_t>& number) {
  return number ? ModelJson(*number) : ModelJson(nullptr);
}

ModelJson gguf_json(const std::string& path, const GgufDescription& model) {
  ModelJson types = ModelJson::array();
  for (const GgufDescription::TypeTotal& type : model.types)
    types.push_back({{"type", type.type},
                     {"tensors", type.tensors},
                     {"parameters", type.parameters},
                     {"bytes", type.bytes},
                     {"readable", type.readable}});
  ModelJson tensors = ModelJson::array();
  for (const GgufDescription::Tensor& tensor : model.tensors)
    tensors.push_back(
        {{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  ModelJson metadata = ModelJson::array();
  for (const GgufDescription::Entry& entry : model.metadata)
    metadata.push_back({{"key", entry.key},
                        {"type", entry.type},
                        {"value", ModelJson::parse(entry.json)},
                        {"whole", entry.whole}});
  return {
      {"model", path},
      {"format", "gguf"},
      {"version", model.version},
      {"file_bytes", model.file_bytes},
      {"architecture", model.architecture},
      {"name", model.name},
      {"context_length", or_null(model.context_length)},
      {"layers", or_null(model.layers)},
      {"heads", or_null(model.heads)},
      {"kv_heads", or_null(model.kv_heads)},
      {"width", or_null(model.width)},
      {"feed_forward_length", or_null(model.feed_forward_length)},
      {"vocabulary", or_null(model.vocabulary)},
      {"tokenizer", model.tokenizer},
      {"chat_template", model.has_chat_template},
      {"split_count", or_null(model.split_count)},
      {"split_number", or_null(model.split_number)},
      {"totals",
       {{"tensors", model.tensors.size()}, {"parameters", model.parameters}, {"bytes", model.tensor_bytes}}},
      {"types", std::move(types)},
      {"tensors", std::move(tensors)},
      {"metadata", std::move(metadata)}};
}

}  // namespace

void inspect_gguf(const GgufOptions& options, Console& console) {
  const GgufDescription model = describe_gguf(options.path);
  if (options.json)
    return console.result(
        gguf_json(options.path, model).dump(-1, ' ', false, ModelJson::error_handler_t::replace) + "\n");
  std::string text =
      fmt::format("{}: GGUF version {}, {}\n", options.path, model.version, describe_bytes(model.file_bytes));
  text += "\nModel\n" + model_table(model);
  text += "\nTypes of the tensors\n" + types_table(model);
  if (options.tensors) text += "\nTensors\n" + tensors_table(model);
  text += "\nMetadata\n" + metadata_table(model);
  console.result(text);
}

}  // namespace halftone::cli
