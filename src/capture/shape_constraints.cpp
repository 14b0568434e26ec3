#include "capture/shape_constraints.h"

#include <algorithm>
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

/// "L['x'][0].left" as steps, each behind a unit separator, however they are written: x, 0, left. Nothing for
/// other texts.
std::optional<std::string> canonical_path(std::string_view text) {
  if (!text.starts_with("L[")) return std::nullopt;
  text.remove_prefix(1);
  std::string path;
  while (!text.empty()) {
    path += '\x1f';
    size_t end = 0;
    if (text[0] == '.') {
      end = std::min(text.find_first_of(".[", 1), text.size());
      path += text.substr(1, end - 1);
    } else if (text.size() > 2 && text[0] == '[' && (text[1] == '\'' || text[1] == '"')) {
      const size_t quote = text.find(text[1], 2);
      if (quote == std::string_view::npos || !text.substr(quote + 1).starts_with("]")) return std::nullopt;
      path += text.substr(2, quote - 2);
      end = quote + 2;
    } else {
      const size_t close = text[0] == '[' ? text.find(']') : std::string_view::npos;
      if (close == std::string_view::npos) return std::nullopt;
      path += text.substr(1, close - 1);
      end = close + 1;
    }
    text.remove_prefix(end);
  }
  return path;
}

/// Python references to the user inputs ("L['x']", "L['batch'][0]", in strict exports "L['flat_args'][0]") →
/// the inputs.
class InputPaths {
 public:
  InputPaths(const GraphModule& module, const std::vector<std::string>& names) {
    for (const GraphInput& input : module.graph().inputs()) {
      if (input.kind == InputKind::kUser) leaves_.push_back(input.value);
    }
    for (size_t i = 0; i < leaves_.size(); ++i)
      paths_['\x1f' + fmt::format("flat_args\x1f{}", i)] = leaves_[i];
    const CallSpec& call = module.call_spec();
    for (size_t i = 0; i < call.args.children.size(); ++i) {
      std::string name = i < names.size() ? names[i] : std::string();
      // Old files do not name the arguments; a leaf's name is its argument's.
      if (name.empty() && call.args.children[i].kind == TreeSpec::Kind::kLeaf) name = leaves_[next_]->name();
      add('\x1f' + name, call.args.children[i]);
    }
    for (size_t i = 0; i < call.kwargs.children.size(); ++i)
      add('\x1f' + call.kwargs.keys.at(i), call.kwargs.children[i]);
  }

  std::optional<SymExpr> resolve(std::string_view text) const {
    if (is_python_name(text)) return SymExpr::symbol(std::string(text));
    constexpr std::string_view kSize = ".size()[";
    const size_t size = text.rfind(kSize);
    const auto path = canonical_path(text.substr(0, size));
    const auto found = path ? paths_.find(*path) : paths_.end();
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
  void add(const std::string& path, const TreeSpec& spec) {
    if (spec.kind == TreeSpec::Kind::kLeaf) {
      paths_[path] = leaves_.at(next_++);  // the caller has checked that there are as many inputs as leaves
      return;
    }
    for (size_t i = 0; i < spec.children.size(); ++i) {
      add(fmt::format("{}\x1f{}", path, spec.keys.empty() ? std::to_string(i) : spec.keys[i]),
          spec.children[i]);
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
    } else if (!is_python_name(name)) {
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
