#include "capture/shape_constraints.h"

#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "capture/guard_text.h"
#include "capture/sympy.h"

namespace halftone {
namespace {

using Op = SymExpr::Op;

/// Python references to the user inputs ("L['x']", "L['batch'][0]") → the inputs.
class InputPaths {
 public:
  InputPaths(const GraphModule& module, const std::vector<std::string>& names) {
    for (const GraphInput& input : module.graph().inputs()) {
      if (input.kind == InputKind::kUser) leaves_.push_back(input.value);
    }
    const CallSpec& call = module.call_spec();
    for (size_t i = 0; i < call.args.children.size(); ++i) {
      add(i < names.size() ? names[i] : std::string(), call.args.children[i]);
    }
    for (size_t i = 0; i < call.kwargs.children.size(); ++i)
      add(call.kwargs.keys.at(i), call.kwargs.children[i]);
  }

  std::optional<SymExpr> resolve(std::string_view text) const {
    if (is_symbol_name(text)) return SymExpr::symbol(std::string(text));
    constexpr std::string_view kSize = ".size()[";
    const size_t size = text.rfind(kSize);
    const auto found = paths_.find(text.substr(0, size));
    if (found == paths_.end()) return std::nullopt;
    const Value& input = *found->second;
    if (size == std::string_view::npos) return input.expression();
    if (!input.meta()) return std::nullopt;
    size_t dimension = 0;
    const std::string_view digits = text.substr(size + kSize.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), dimension);
    if (error != std::errc{} || std::string_view(end, digits.data() + digits.size()) != "]")
      return std::nullopt;
    if (dimension >= input.meta()->sizes.size()) return std::nullopt;
    return input.meta()->sizes[dimension];
  }

 private:
  void add(std::string name, const TreeSpec& spec) {
    if (name.empty() && spec.kind == TreeSpec::Kind::kLeaf && next_ < leaves_.size())
      name = leaves_[next_]->name();
    for (const std::string& path : spec.leaf_paths()) {
      if (next_ == leaves_.size()) return;
      paths_[fmt::format("L['{}']{}", name, path)] = leaves_[next_++];
    }
  }

  std::vector<const Value*> leaves_;
  size_t next_ = 0;
  std::map<std::string, const Value*, std::less<>> paths_;
};

std::set<std::string> input_symbols(const GraphModule& module) {
  std::set<std::string> names;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.value->expression()) input.value->expression()->collect_symbols(names);
    if (!input.value->meta()) continue;
    for (const SymExpr& size : input.value->meta()->sizes) size.collect_symbols(names);
  }
  return names;
}

SymbolRange read_range(const JsonCursor& cursor) {
  SymbolRange range{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  if (!cursor.at("min_val").is_null()) range.min = cursor.at("min_val").get_int();
  if (!cursor.at("max_val").is_null()) range.max = cursor.at("max_val").get_int();
  if (range.min > range.max) cursor.fail_here(fmt::format("empty range {} to {}", range.min, range.max));
  // The exporter writes 2 for every dynamic size, because it looks at 0 and 1 apart; torch itself does not
  // check it.
  if (range.min == 2) range.min = 0;
  return range;
}

bool is_trivial(const SymExpr& condition) {
  if (condition.as_constant().value_or(0) != 0) return true;
  return condition.op() == Op::kEq && condition.operands()[0] == condition.operands()[1];
}

void add_guard(GraphModule& module, SymExpr condition, std::string text) {
  if (!is_trivial(condition)) module.guards.push_back({std::move(condition), std::move(text)});
}

/// A range of "2*s0": a condition on what is derived from a symbol.
void add_derived_range(GraphModule& module, const SymExpr& expression, const std::string& text,
                       const SymbolRange& range) {
  const SymbolRange everything{0, std::numeric_limits<int64_t>::max()};
  if (range.min > everything.min) {
    add_guard(module, SymExpr::make(Op::kGe, {expression, SymExpr(range.min)}),
              fmt::format("{} >= {}", text, range.min));
  }
  if (range.max < everything.max) {
    add_guard(module, SymExpr::make(Op::kLe, {expression, SymExpr(range.max)}),
              fmt::format("{} <= {}", text, range.max));
  }
}

}  // namespace

void read_shape_constraints(Pt2Context& context, const JsonCursor& program,
                            const std::vector<std::string>& argument_names, GraphModule& module) {
  const InputPaths paths(module, argument_names);
  const GuardReference resolve = [&](std::string_view text) { return paths.resolve(text); };
  const std::set<std::string> symbols = input_symbols(module);
  const JsonCursor ranges = program.at("range_constraints");
  for (const std::string& name : ranges.keys()) {
    const SymbolRange range = read_range(ranges.at(name));
    if (symbols.contains(name)) {
      module.ranges[name] = range;
    } else if (!is_symbol_name(name)) {
      const auto expression = try_parse_guard(name, resolve);
      if (expression) add_derived_range(module, *expression, name, range);
      if (!expression)
        context.notes.push_back(
            fmt::format("the range of \"{}\" could not be read; it is not checked", name));
    }
  }
  if (!program.has("guards_code")) return;
  const JsonCursor guards = program.at("guards_code");
  if (!guards.raw().is_array()) guards.fail_here("expected an array");
  for (size_t i = 0; i < guards.size(); ++i) {
    std::string text = guards.at(i).get_string();
    auto condition = try_parse_guard(text, resolve);
    if (condition) {
      add_guard(module, std::move(*condition), std::move(text));
    } else {
      context.notes.push_back(fmt::format("guard not understood, so not checked: {}", text));
    }
  }
}

}  // namespace halftone
