// Expressions of templates.
#include "text/template/operations.h"
#include "text/template/renderer.h"
#include "text/template/text_forms.h"

namespace halftone::jinja {

Value Renderer::evaluate(const Expression& expression) {
  const Deeper deeper(*this);
  r_.spend(1);
  r_.line = expression.line;
  return evaluate_here(expression);
}

Value Renderer::evaluate_or_none(const ExpressionPtr& expression) {
  return expression == nullptr ? Value(None{}) : evaluate(*expression);
}

Value Renderer::evaluate_here(const Expression& expression) {
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i]); };
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return look_up(expression.text);
    case ExpressionKind::kAttribute:
      return attribute_of(r_, part(0), expression.text);
    case ExpressionKind::kItem: {
      const Value value = part(0);
      return item_of(r_, value, part(1));
    }
    case ExpressionKind::kSlice: {
      const Value value = part(0), begin = evaluate_or_none(expression.parts[1]),
                  end = evaluate_or_none(expression.parts[2]);
      return slice_of(r_, value, begin, end, evaluate_or_none(expression.parts[3]));
    }
    case ExpressionKind::kCall:
      return evaluate_call(expression);
    case ExpressionKind::kFilter:
      return filtered(expression, nullptr);
    case ExpressionKind::kTest: {
      const Value value = part(0);
      return apply_test(r_, expression.text, value, arguments_of(expression));
    }
    case ExpressionKind::kNot:
      return !is_true(part(0));
    case ExpressionKind::kNegative:
      return negative(r_, part(0));
    case ExpressionKind::kPositive:
      return negative(r_, negative(r_, part(0)));
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      return calculate(r_, expression.text, left, part(1));
    }
    case ExpressionKind::kCompare:
      return compare(expression);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr: {
      Value value;
      for (const ExpressionPtr& each : expression.parts) {
        value = evaluate(*each);
        if (is_true(value) == (expression.kind == ExpressionKind::kOr)) break;
      }
      return value;
    }
    case ExpressionKind::kJoin:
      return evaluate_join(expression);
    case ExpressionKind::kConditional:
      if (is_true(part(0))) return part(1);
      if (expression.parts[2] == nullptr)
        return Undefined{"an inline if without else, whose condition is false,"};
      return part(2);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return r_.list(evaluate_parts(expression, 0),
                     expression.kind == ExpressionKind::kTuple ? ListKind::kTuple : ListKind::kList);
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
  }
  return Undefined{};
}

std::vector<Value> Renderer::evaluate_parts(const Expression& expression, size_t first) {
  std::vector<Value> values;
  for (size_t i = first; i < expression.parts.size(); ++i) values.push_back(evaluate(*expression.parts[i]));
  return values;
}

/// Of a call, a filter, a test: all parts but the first, and the keywords.
Arguments Renderer::arguments_of(const Expression& expression) {
  Arguments arguments{evaluate_parts(expression, 1), {}};
  for (const Keyword& keyword : expression.keywords)
    arguments.keywords.emplace_back(keyword.name, evaluate(*keyword.value));
  return arguments;
}

/// The innermost of a chain of filters without parts[0] takes `input`: {% set x | trim | upper %}.
Value Renderer::filtered(const Expression& expression, const Value* input) {
  const Deeper deeper(*this);
  const ExpressionPtr& inner = expression.parts.front();
  Value value;
  if (inner == nullptr) {
    value = *input;
  } else {
    value = input != nullptr ? filtered(*inner, input) : evaluate(*inner);
  }
  const Arguments arguments = arguments_of(expression);
  r_.line = expression.line;
  return apply_filter(r_, expression.text, value, arguments);
}

Value Renderer::evaluate_call(const Expression& expression) {
  const Value callee = evaluate(*expression.parts.front());
  const Arguments arguments = arguments_of(expression);
  r_.line = expression.line;
  require_defined(r_, callee);
  if (const auto* macro = std::get_if<const Macro*>(&callee)) return call_macro(**macro, arguments);
  if (const auto* function = std::get_if<Function>(&callee)) return call_function(r_, *function, arguments);
  if (const auto* method = std::get_if<const Method*>(&callee)) return call_method(r_, **method, arguments);
  if (is<Loop*>(callee)) r_.fail_unsupported("a recursive loop");
  r_.fail_value("{} cannot be called", kind_name(callee));
}

Value Renderer::evaluate_dict(const Expression& expression) {
  Dict dict;
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i]), value = evaluate(*expression.parts[i + 1]);
    if (try_text(key) == nullptr && !is_number(key) && !is<None>(key))
      r_.fail_unsupported(fmt::format("{} as a key", kind_name(key)));
    // Of equal keys the first one stays, with the last one's value.
    if (const Value* found = try_entry(r_, dict, key)) {
      *const_cast<Value*>(found) = value;
    } else {
      dict.entries.emplace_back(key, value);
    }
  }
  return r_.dict(std::move(dict.entries));
}

Value Renderer::evaluate_join(const Expression& expression) {
  std::string text;
  for (const ExpressionPtr& part : expression.parts) {
    const std::string each = text_of(r_, evaluate(*part));
    r_.reserve(each.size());
    text += each;
  }
  return r_.text(std::move(text));
}

bool Renderer::compare(const Expression& expression) {
  Value left = evaluate(*expression.parts.front());
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    const Value right = evaluate(*expression.parts[i + 1]);
    const std::string& op = expression.operators[i];
    r_.line = expression.line;
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = is_equal(r_, left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(r_, right, left) == (op == "in");
    } else {
      const int order = order_of(r_, left, right);
      holds = op == "<" ? order < 0 : op == ">" ? order > 0 : op == "<=" ? order <= 0 : order >= 0;
    }
    if (!holds) return false;
    left = right;
  }
  return true;
}

}  // namespace halftone::jinja
