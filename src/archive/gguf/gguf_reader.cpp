// What an opened GGUF file answers: values by key, tensors by name, rows as floats.
#include <algorithm>
#include <bit>

#include "archive/bytes/byte_reader.h"
#include "archive/bytes/text.h"
#include "archive/gguf/gguf.h"
#include "archive/gguf/gguf_blocks.h"

namespace halftone {

const GgufValue* GgufReader::try_value(std::string_view key) const {
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](uint32_t place, std::string_view wanted) { return metadata_[place].key < wanted; });
  return found != by_key_.end() && metadata_[*found].key == key ? &metadata_[*found].value : nullptr;
}

const GgufTensor* GgufReader::try_tensor(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t place, std::string_view wanted) { return tensors_[place].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

const GgufValue& GgufReader::value_of(std::string_view key) const {
  const GgufValue* value = try_value(key);
  if (value == nullptr)
    fail(ErrorCode::kCorruptFile, "{}: metadata {} is missing", file_->name(), quote_text(key));
  return *value;
}

void GgufReader::fail_type(std::string_view key, std::string_view expected) const {
  fail(ErrorCode::kCorruptFile, "{}: metadata {} is {}, expected {}", file_->name(), quote_text(key),
       value_of(key).describe_type(), expected);
}

int64_t GgufReader::get_int(std::string_view key) const {
  if (const auto value = value_of(key).try_int()) return *value;
  fail_type(key, "an integer of at most 63 bits");
}

double GgufReader::get_number(std::string_view key) const {
  if (const auto value = value_of(key).try_number()) return *value;
  fail_type(key, "a number");
}

bool GgufReader::get_bool(std::string_view key) const {
  if (const auto value = value_of(key).try_bool()) return *value;
  fail_type(key, "bool");
}

std::string_view GgufReader::get_string(std::string_view key) const {
  if (const auto value = value_of(key).try_string()) return *value;
  fail_type(key, "string");
}

std::vector<std::string_view> GgufReader::get_strings(std::string_view key) const {
  const GgufValue& value = value_of(key);
  if (!value.is_array() || value.element_type() != GgufValueType::kString)
    fail_type(key, "an array of string");
  std::vector<std::string_view> result;
  result.reserve(static_cast<size_t>(value.size()));
  for (const GgufValue& element : value.elements()) result.push_back(element.try_string().value_or(""));
  return result;
}

std::vector<int64_t> GgufReader::get_ints(std::string_view key) const {
  const GgufValue& value = value_of(key);
  if (!value.is_array()) fail_type(key, "an array of integers");
  std::vector<int64_t> result;
  for (const GgufValue& element : value.elements()) {
    const auto number = element.try_int();
    if (!number) fail_type(key, "an array of integers of at most 63 bits");
    result.push_back(*number);
  }
  return result;
}

std::vector<float> GgufReader::get_floats(std::string_view key) const {
  const GgufValue& value = value_of(key);
  if (!value.is_array() || value.element_type() != GgufValueType::kFloat32)
    fail_type(key, "an array of float32");
  std::vector<float> result;
  result.reserve(static_cast<size_t>(value.size()));
  for (const GgufValue& element : value.elements())
    result.push_back(static_cast<float>(element.try_number().value_or(0)));
  return result;
}

std::vector<int64_t> GgufTensor::shape() const {
  return {sizes.rend() - static_cast<std::ptrdiff_t>(rank), sizes.rend()};
}

void GgufReader::read_rows(const GgufTensor& tensor, int64_t first_row, std::span<float> values) const {
  const std::string where = fmt::format("{}: tensor {}", file_->name(), quote_text(tensor.name));
  const GgmlFormat* format = try_ggml_format(tensor.type);
  if (format == nullptr || !format->readable) {
    fail(ErrorCode::kUnsupported, "{} is of {}, whose numbers are not read; those of {} are", where,
         ggml_type_text(tensor.type), readable_ggml_types());
  }
  const auto row = static_cast<size_t>(tensor.row_values());
  const bool whole = row == 0 ? values.empty() : values.size() % row == 0;
  const size_t count = row == 0 ? 0 : values.size() / row;
  if (!whole || first_row < 0 || first_row > tensor.rows() ||
      count > static_cast<size_t>(tensor.rows() - first_row)) {
    fail(ErrorCode::kInvalidArgument, "{} has {} rows of {} values: there are no {} values from row {} on",
         where, tensor.rows(), row, values.size(), first_row);
  }
  const size_t row_bytes = row / format->values * format->bytes;
  dequantize_blocks(format->type,
                    tensor.bytes.subspan(static_cast<size_t>(first_row) * row_bytes, count * row_bytes),
                    values);
}

}  // namespace halftone
