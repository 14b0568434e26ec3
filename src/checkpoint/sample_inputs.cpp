#include "checkpoint/sample_inputs.h"

#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "checkpoint/ht_json.h"

namespace halftone::ht {
namespace {

nlohmann::json value_json(const c10::IValue& value, size_t index) {
  if (value.isNone()) return nullptr;
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return {{"float", double_json(value.toDouble())}};
  if (value.isString()) return {{"text", text_json(value.toStringRef())}};
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    return {{"complex", {double_json(number.real()), double_json(number.imag())}}};
  }
  fail(ErrorCode::kUnsupported, "sample input {} cannot be saved: it is a {}", index, value.tagKind());
}

StoredInput input_of(const JsonCursor& place) {
  if (place.is_null()) return c10::IValue();
  if (place.raw().is_boolean()) return c10::IValue(place.get_bool());
  if (place.raw().is_number()) return c10::IValue(place.get_int());
  if (place.size() != 1) place.fail_here("is no sample input");
  if (place.has("tensor")) return record_of(place.at("tensor"));
  if (place.has("float")) return c10::IValue(place.at("float").get_double());
  if (place.has("text")) return c10::IValue(text_of(place.at("text")));
  const auto parts = elements(place.at("complex"));
  if (parts.size() != 2) place.fail_here("a complex number has two parts");
  return c10::IValue(c10::complex<double>(parts[0].get_double(), parts[1].get_double()));
}

}  // namespace

nlohmann::json sample_inputs_json(const std::vector<c10::IValue>& inputs,
                                  const std::vector<HtRecord>& records) {
  nlohmann::json json = nlohmann::json::array();
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor()) {
      json.push_back({{"tensor", record_json(records.at(next++))}});
    } else {
      json.push_back(value_json(inputs[i], i));
    }
  }
  return json;
}

std::vector<StoredInput> sample_inputs_of(const JsonCursor& place) {
  std::vector<StoredInput> inputs;
  for (const JsonCursor& item : elements(place)) inputs.push_back(input_of(item));
  return inputs;
}

}  // namespace halftone::ht
