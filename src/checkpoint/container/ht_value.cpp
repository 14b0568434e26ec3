#include "checkpoint/container/ht_value.h"

#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"

namespace halftone {
namespace {

using Kind = HtNested::Kind;
constexpr std::array kKinds = {std::pair{Kind::kTuple, "tuple"}, std::pair{Kind::kList, "list"},
                               std::pair{Kind::kDict, "dict"}};

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string kind_name(Kind kind) {
  for (const auto& [one, name] : kKinds) {
    if (one == kind) return name;
  }
  fail(ErrorCode::kInternal, "no name for this kind of nesting");
}

nlohmann::json pair_json(const std::string& key, const HtValue& value) {
  return {{"key", ht::text_json(key)}, {"value", value_json(value)}};
}

nlohmann::json nested_json(const HtNested& nested) {
  nlohmann::json items = nlohmann::json::array();
  for (size_t i = 0; i < nested.items.size(); ++i) {
    const bool keyed = nested.kind == Kind::kDict;
    items.push_back(keyed ? pair_json(nested.keys.at(i), nested.items[i]) : value_json(nested.items[i]));
  }
  return {{kind_name(nested.kind), std::move(items)}};
}

/// Pairs of a key and a value, each key once.
std::vector<std::pair<std::string, HtValue>> pairs_of(const JsonCursor& place) {
  std::vector<std::pair<std::string, HtValue>> pairs;
  std::set<std::string> keys;
  for (const JsonCursor& item : ht::elements(place)) {
    ht::require_known(item, {"key", "value"});
    pairs.emplace_back(ht::text_of(item.at("key")), value_of(item.at("value")));
    if (!keys.insert(pairs.back().first).second) item.fail_here("a key stands twice");
  }
  return pairs;
}

HtNested nested_of(Kind kind, const JsonCursor& place) {
  HtNested nested{kind, {}, {}};
  if (kind == Kind::kDict) {
    for (auto& [key, value] : pairs_of(place)) {
      nested.keys.push_back(std::move(key));
      nested.items.push_back(std::move(value));
    }
  } else {
    for (const JsonCursor& item : ht::elements(place)) nested.items.push_back(value_of(item));
  }
  return nested;
}

HtShape shape_of(const JsonCursor& place) {
  ht::require_known(place, {"shape", "dtype"});
  HtShape shape{ht::dtype_of(place.at("dtype")), ht::sizes_of(place.at("shape"))};
  if (!tensor_bytes(shape.sizes, shape.dtype)) place.fail_here("its shape overflows");
  return shape;
}

std::string shape_text(DType dtype, const std::vector<int64_t>& sizes) {
  return fmt::format("{}[{}]", ht::dtype_text(dtype), fmt::join(sizes, ", "));
}

std::string describe(const HtValue& value, const HtFile* file) {
  return std::visit(Overloaded{[](std::monostate) -> std::string { return "None"; },
                               [](bool flag) -> std::string { return flag ? "true" : "false"; },
                               [](int64_t number) { return std::to_string(number); },
                               [](double number) { return fmt::format("{}", number); },
                               [](std::complex<double> number) {
                                 return fmt::format("{}{:+}i", number.real(), number.imag());
                               },
                               [](const std::string& text) { return quote_text(text); },
                               [&](const HtRecord& record) {
                                 if (file == nullptr) return "tensor " + quote_text(record.stored);
                                 const HtPlace place = file->place(record);
                                 return shape_text(place.dtype, place.sizes);
                               },
                               [](const HtShape& shape) { return shape_text(shape.dtype, shape.sizes); },
                               [&](const HtNested& nested) {
                                 std::vector<std::string> items;
                                 for (size_t i = 0; i < nested.items.size(); ++i) {
                                   const bool keyed = nested.kind == Kind::kDict;
                                   items.push_back((keyed ? quote_text(nested.keys.at(i)) + ": " : "") +
                                                   describe(nested.items[i], file));
                                 }
                                 const std::string_view marks = nested.kind == Kind::kTuple  ? "()"
                                                                : nested.kind == Kind::kList ? "[]"
                                                                                             : "{}";
                                 return fmt::format("{}{}{}", marks[0], fmt::join(items, ", "), marks[1]);
                               }},
                    value.value);
}

}  // namespace

nlohmann::json value_json(const HtValue& value) {
  return std::visit(
      Overloaded{[](std::monostate) -> nlohmann::json { return nullptr; },
                 [](bool flag) -> nlohmann::json { return flag; },
                 [](int64_t number) -> nlohmann::json { return number; },
                 [](double number) -> nlohmann::json {
                   return {{"float", ht::double_json(number)}};
                 },
                 [](std::complex<double> number) -> nlohmann::json {
                   return {{"complex", {ht::double_json(number.real()), ht::double_json(number.imag())}}};
                 },
                 [](const std::string& text) -> nlohmann::json {
                   return {{"text", ht::text_json(text)}};
                 },
                 [](const HtRecord& record) -> nlohmann::json {
                   return {{"tensor", record_json(record)}};
                 },
                 [](const HtShape& shape) -> nlohmann::json {
                   return {{"shape", shape.sizes}, {"dtype", ht::dtype_text(shape.dtype)}};
                 },
                 [](const HtNested& nested) -> nlohmann::json { return nested_json(nested); }},
      value.value);
}

HtValue value_of(const JsonCursor& place) {
  if (place.is_null()) return {};
  if (place.raw().is_boolean()) return {place.get_bool()};
  if (place.raw().is_number()) return {place.get_int()};
  if (place.has("shape")) return {shape_of(place)};
  if (place.keys().size() != 1) place.fail_here("is no value that files hold");
  if (place.has("tensor")) return {record_of(place.at("tensor"))};
  if (place.has("float")) return {place.at("float").get_double()};
  if (place.has("text")) return {ht::text_of(place.at("text"))};
  for (const auto& [kind, name] : kKinds) {
    if (place.has(name)) return {nested_of(kind, place.at(name))};
  }
  if (!place.has("complex"))
    place.fail_here(fmt::format("{} is no value that files hold", quote_text(place.keys()[0])));
  const auto parts = ht::elements(place.at("complex"));
  if (parts.size() != 2) place.fail_here("a complex number has two parts");
  return {std::complex<double>(parts[0].get_double(), parts[1].get_double())};
}

nlohmann::json samples_json(const std::vector<HtSample>& samples) {
  nlohmann::json json = nlohmann::json::array();
  for (const HtSample& sample : samples) {
    nlohmann::json args = nlohmann::json::array();
    nlohmann::json kwargs = nlohmann::json::array();
    for (const HtValue& value : sample.args) args.push_back(value_json(value));
    for (const auto& [name, value] : sample.kwargs) kwargs.push_back(pair_json(name, value));
    json.push_back({{"args", std::move(args)}, {"kwargs", std::move(kwargs)}});
  }
  return json;
}

std::vector<HtSample> samples_of(const JsonCursor& place) {
  std::vector<HtSample> samples;
  for (const JsonCursor& item : ht::elements(place)) {
    ht::require_known(item, {"args", "kwargs"});
    HtSample sample;
    for (const JsonCursor& value : ht::elements(item.at("args"))) sample.args.push_back(value_of(value));
    sample.kwargs = pairs_of(item.at("kwargs"));
    samples.push_back(std::move(sample));
  }
  return samples;
}

void collect_records(const HtValue& value, std::vector<const HtRecord*>& records) {
  if (const auto* record = std::get_if<HtRecord>(&value.value)) records.push_back(record);
  if (const auto* nested = std::get_if<HtNested>(&value.value)) {
    for (const HtValue& item : nested->items) collect_records(item, records);
  }
}

std::vector<const HtRecord*> records_in(const std::vector<HtSample>& samples) {
  std::vector<const HtRecord*> records;
  for (const HtSample& sample : samples) {
    for (const HtValue& value : sample.args) collect_records(value, records);
    for (const auto& [name, value] : sample.kwargs) collect_records(value, records);
  }
  return records;
}

std::string describe(const HtSample& sample, const HtFile* file) {
  std::vector<std::string> parts;
  for (const HtValue& value : sample.args) parts.push_back(describe(value, file));
  for (const auto& [name, value] : sample.kwargs)
    parts.push_back(fmt::format("{}={}", quote_text(name), describe(value, file)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace halftone
