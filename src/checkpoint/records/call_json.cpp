#include "checkpoint/records/call_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"

namespace halftone::ht {
namespace {

using Kind = TreeSpec::Kind;
constexpr std::array kKinds = {std::pair{Kind::kTuple, "tuple"}, std::pair{Kind::kList, "list"},
                               std::pair{Kind::kDict, "dict"}};

/// A leaf is null: there are many.
nlohmann::json tree_json(const TreeSpec& spec) {
  if (spec.kind == Kind::kLeaf) return nullptr;
  nlohmann::json children = nlohmann::json::array();
  for (const TreeSpec& child : spec.children) children.push_back(tree_json(child));
  nlohmann::json json = {{"children", std::move(children)}};
  for (const auto& [kind, name] : kKinds) {
    if (kind == spec.kind) json["kind"] = name;
  }
  if (!spec.type_name.empty()) json["type"] = text_json(spec.type_name);
  if (!spec.keys.empty()) json["keys"] = texts_json(spec.keys);
  if (!spec.steps.empty()) json["steps"] = texts_json(spec.steps);
  return json;
}

Kind kind_of(const JsonCursor& place) {
  const std::string text = place.get_string();
  for (const auto& [kind, name] : kKinds) {
    if (text == name) return kind;
  }
  place.fail_here(fmt::format("{} is no kind of nesting", quote_text(text)));
}

TreeSpec tree_of(const JsonCursor& place) {
  if (place.is_null()) return TreeSpec::leaf();
  require_known(place, {"children", "kind", "type", "keys", "steps"});
  TreeSpec spec;
  spec.kind = kind_of(place.at("kind"));
  for (const JsonCursor& child : elements(place.at("children"))) spec.children.push_back(tree_of(child));
  if (place.has("type")) spec.type_name = text_of(place.at("type"));
  if (place.has("keys")) spec.keys = texts_of(place.at("keys"));
  if (place.has("steps")) spec.steps = texts_of(place.at("steps"));
  const bool keyed = spec.kind == Kind::kDict || !spec.keys.empty();
  if (keyed && spec.keys.size() != spec.children.size())
    place.fail_here(fmt::format("{} keys for {} children", spec.keys.size(), spec.children.size()));
  if (std::set<std::string>(spec.keys.begin(), spec.keys.end()).size() != spec.keys.size())
    place.fail_here("a key stands twice");
  if (!spec.steps.empty() && spec.steps.size() != spec.children.size())
    place.fail_here(fmt::format("{} steps for {} children", spec.steps.size(), spec.children.size()));
  return spec;
}

SymExpr expression_of(const JsonCursor& place) {
  try {
    return SymExpr::parse(place.get_string());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCorruptFile) throw;
    place.fail_here(error.what());
  }
}

}  // namespace

nlohmann::json call_json(const CallSpec& call) {
  return {
      {"args", tree_json(call.args)}, {"kwargs", tree_json(call.kwargs)}, {"result", tree_json(call.result)}};
}

CallSpec call_of(const JsonCursor& place) {
  require_known(place, {"args", "kwargs", "result"});
  CallSpec call{tree_of(place.at("args")), tree_of(place.at("kwargs")), tree_of(place.at("result"))};
  if (call.args.kind != Kind::kTuple || call.kwargs.kind != Kind::kDict)
    place.fail_here("args must be a tuple and kwargs a dict");
  return call;
}

nlohmann::json ranges_json(const std::map<std::string, SymbolRange>& ranges) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [symbol, range] : ranges)
    json.push_back({{"symbol", text_json(symbol)}, {"min", range.min}, {"max", range.max}});
  return json;
}

std::map<std::string, SymbolRange> ranges_of(const JsonCursor& place) {
  std::map<std::string, SymbolRange> ranges;
  for (const JsonCursor& item : elements(place)) {
    require_known(item, {"symbol", "min", "max"});
    const SymbolRange range{item.at("min").get_int(), item.at("max").get_int()};
    if (!ranges.emplace(text_of(item.at("symbol")), range).second) item.fail_here("a symbol has two ranges");
  }
  return ranges;
}

nlohmann::json guards_json(const std::vector<ShapeGuard>& guards) {
  nlohmann::json json = nlohmann::json::array();
  for (const ShapeGuard& guard : guards)
    json.push_back({{"condition", guard.condition.to_string()}, {"text", text_json(guard.text)}});
  return json;
}

std::vector<ShapeGuard> guards_of(const JsonCursor& place) {
  std::vector<ShapeGuard> guards;
  for (const JsonCursor& item : elements(place)) {
    require_known(item, {"condition", "text"});
    guards.push_back({expression_of(item.at("condition")), text_of(item.at("text"))});
  }
  return guards;
}

nlohmann::json texts_json(const std::vector<std::string>& texts) {
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& text : texts) json.push_back(text_json(text));
  return json;
}

std::vector<std::string> texts_of(const JsonCursor& place) {
  std::vector<std::string> texts;
  for (const JsonCursor& item : elements(place)) texts.push_back(text_of(item));
  return texts;
}

}  // namespace halftone::ht
