// Changes to the text form of a graph, token by token.
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "mutate.h"

namespace halftone::hostile {
namespace {

enum class Kind { kSpace, kValue, kNumber, kWord, kText, kMark };

struct Token {
  Kind kind;
  std::string text;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
}

/// `f32[2, 3]` is a word, marks and numbers; `%x:` a value and a mark.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  size_t i = 0;
  const auto take = [&](Kind kind, size_t end) {
    tokens.push_back({kind, text.substr(i, end - i)});
    i = end;
  };
  while (i < text.size()) {
    size_t end = i + 1;
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) != 0) ++end;
      take(Kind::kSpace, end);
    } else if (c == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      take(Kind::kText, std::min(end + 1, text.size()));
    } else if (c == '%' || is_word(c) ||
               (c == '-' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0)) {
      while (end < text.size() && is_word(text[end]) && !(c == '%' && text[end] == ':')) ++end;
      const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
      take(c == '%' ? Kind::kValue : number ? Kind::kNumber : Kind::kWord, end);
    } else {
      take(Kind::kMark, end);
    }
  }
  return tokens;
}

std::string text_of(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

std::string other_number(const std::string& old, Dice& dice) {
  static const std::vector<std::string> fixed = {"0",
                                                 "1",
                                                 "2",
                                                 "3",
                                                 "-1",
                                                 "-2",
                                                 "-5",
                                                 "4",
                                                 "5",
                                                 "7",
                                                 "8",
                                                 "16",
                                                 "31",
                                                 "32",
                                                 "33",
                                                 "64",
                                                 "99",
                                                 "127",
                                                 "128",
                                                 "255",
                                                 "256",
                                                 "1000",
                                                 "65537",
                                                 "2147483647",
                                                 "2147483648",
                                                 "-2147483648",
                                                 "4611686018427387904",
                                                 "9223372036854775807",
                                                 "-9223372036854775808"};
  static const std::vector<std::string> floats = {"0.0",   "-0.0", "0.5",  "-1.5", "1e38",
                                                  "1e-45", "inf",  "-inf", "nan",  "3.4e38"};
  const bool is_float = old.find_first_of(".einf") != std::string::npos;
  if (is_float) return dice.chance(80) ? dice.one_of(floats) : dice.one_of(fixed);
  if (dice.chance(40)) {
    try {
      const int64_t value = std::stoll(old);
      const int64_t changes[] = {wrapping_add(value, 1), wrapping_add(value, -1), value / 2,
                                 wrapping_negate(value)};
      return std::to_string(changes[dice.pick(4)]);
    } catch (const std::exception&) {
      // longer than an integer: one of the fixed ones
    }
  }
  return dice.chance(95) ? dice.one_of(fixed) : dice.one_of(floats);
}

/// Indices of the tokens of a kind.
std::vector<size_t> places(const std::vector<Token>& tokens, auto&& wanted) {
  std::vector<size_t> found;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (wanted(tokens[i])) found.push_back(i);
  }
  return found;
}

class GraphMutation {
 public:
  GraphMutation(std::vector<Token> tokens, Dice& dice, const std::vector<std::string>& targets)
      : tokens_(std::move(tokens)), dice_(dice), targets_(targets) {}

  void step() {
    switch (dice_.pick(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return change([](const Token& t) { return t.kind == Kind::kNumber; },
                      [&](Token& t) { t.text = other_number(t.text, dice_); });
      case 4:
      case 5:
        return rewire();
      case 6:
        return change(
            [](const Token& t) { return t.kind == Kind::kWord && t.text.find("::") != std::string::npos; },
            [&](Token& t) { t.text = dice_.one_of(targets_); });
      case 7:
        return change([](const Token& t) { return dtypes().contains(t.text); },
                      [&](Token& t) {
                        t.text = *std::next(dtypes().begin(), static_cast<long>(dice_.pick(dtypes().size())));
                      });
      case 8:
        return change(
            [](const Token& t) {
              return t.kind == Kind::kNumber || t.kind == Kind::kValue || t.text == "None" ||
                     t.text == "true" || t.text == "false";
            },
            [&](Token& t) { t.text = any_constant(); });
      case 9:
        return change_argument();
      case 10:
        return change_statement();
      case 11:
        return change(
            [](const Token& t) {
              return t.text == "parameter" || t.text == "buffer" || t.text == "user" || t.text == "constant";
            },
            [&](Token& t) {
              t.text = dice_.one_of<std::string>({"parameter", "buffer", "user", "constant"});
            });
      default:
        return change(
            [](const Token& t) { return t.text == "s0" || t.text == "s1"; },
            [&](Token& t) {
              t.text = dice_.one_of<std::string>({"s0", "s1", "s0*s1", "s7", "4", "2*s0", "s1-1", "s0//2"});
            });
    }
  }

  std::string text() const { return text_of(tokens_); }

 private:
  static const std::set<std::string>& dtypes() {
    static const std::set<std::string> names = {"f32", "f64", "f16", "bf16", "i64", "i32",
                                                "i16", "i8",  "u8",  "bool", "c64"};
    return names;
  }

  void change(auto&& wanted, auto&& action) {
    const std::vector<size_t> found = places(tokens_, wanted);
    if (!found.empty()) action(tokens_[found[dice_.pick(found.size())]]);
  }

  std::string any_value() {
    const std::vector<size_t> found = places(tokens_, [](const Token& t) { return t.kind == Kind::kValue; });
    return found.empty() ? "%x" : tokens_[found[dice_.pick(found.size())]].text;
  }

  std::string any_constant() {
    return dice_.one_of<std::string>({"None",
                                      "true",
                                      "false",
                                      "0",
                                      "1",
                                      "-1",
                                      "2.5",
                                      "inf",
                                      "nan",
                                      "[]",
                                      "[1]",
                                      "[1, 2]",
                                      "[-1, 3, 2]",
                                      "[None]",
                                      "dtype:f32",
                                      "dtype:i64",
                                      "\"none\"",
                                      "complex(1.0, 2.0)",
                                      "device:cpu",
                                      "layout:strided",
                                      "format:channels_last",
                                      any_value()});
  }

  /// A use reads another value; a definition stays as it is.
  void rewire() {
    std::vector<size_t> uses;
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind == Kind::kValue && tokens_[i + 1].text != ":") uses.push_back(i);
    }
    if (!uses.empty()) tokens_[uses[dice_.pick(uses.size())]].text = any_value();
  }

  /// Drops the operand after a comma, or adds one.
  void change_argument() {
    const std::vector<size_t> commas = places(tokens_, [](const Token& t) { return t.text == ","; });
    if (commas.empty()) return;
    const size_t at = commas[dice_.pick(commas.size())];
    if (dice_.chance(50)) {
      tokens_[at].text = ", " + any_constant() + ",";
    } else if (at + 2 < tokens_.size()) {
      tokens_.erase(tokens_.begin() + static_cast<long>(at), tokens_.begin() + static_cast<long>(at) + 3);
    }
  }

  /// Removes, repeats or moves a line.
  void change_statement() {
    std::vector<std::string> lines;
    const std::string all = text_of(tokens_);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size() - 1) + 1;
      lines.push_back(all.substr(begin, end - begin));
      begin = end;
    }
    if (lines.size() < 4) return;
    const size_t at = 1 + dice_.pick(lines.size() - 3);
    switch (dice_.pick(3)) {
      case 0:
        lines.erase(lines.begin() + static_cast<long>(at));
        break;
      case 1: {
        std::string copy = lines[at];
        const size_t name = copy.find('%');
        const size_t colon = copy.find(':', name == std::string::npos ? 0 : name);
        if (name != std::string::npos && colon != std::string::npos) copy.insert(colon, "_again");
        lines.insert(lines.begin() + static_cast<long>(at) + 1, copy);
        break;
      }
      default:
        std::swap(lines[at], lines[1 + dice_.pick(lines.size() - 3)]);
    }
    std::string text;
    for (const std::string& line : lines) text += line;
    tokens_ = tokens_of(text);
  }

  std::vector<Token> tokens_;
  Dice& dice_;
  const std::vector<std::string>& targets_;
};

/// An argument of a type that the schema wants, as text; empty if the text form has none of the type.
std::string argument_of(const c10::TypePtr& type, Dice& dice, const std::vector<std::string>& values) {
  using c10::TypeKind;
  const auto number = [&] { return other_number("2", dice); };
  switch (type->kind()) {
    case TypeKind::TensorType:
      return dice.one_of(values);
    case TypeKind::OptionalType:
      return dice.chance(50)
                 ? "None"
                 : argument_of(type->expectRef<c10::OptionalType>().getElementType(), dice, values);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return number();
    case TypeKind::NumberType:
      return dice.chance(50) ? number() : other_number("0.5", dice);
    case TypeKind::FloatType:
      return other_number("0.5", dice);
    case TypeKind::BoolType:
      return dice.chance(50) ? "true" : "false";
    case TypeKind::StringType:
      return dice.one_of<std::string>({"\"none\"", "\"mean\"", "\"sum\"", "\"\"", "\"reflect\""});
    case TypeKind::ScalarTypeType:
      return dice.one_of<std::string>({"dtype:f32", "dtype:i64", "dtype:bool", "dtype:bf16", "dtype:c64"});
    case TypeKind::ListType: {
      const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
      std::string text = "[";
      for (size_t i = 0, count = dice.pick(4); i < count; ++i) {
        const std::string item = argument_of(element, dice, values);
        if (item.empty()) return "";
        text += (i == 0 ? "" : ", ") + item;
      }
      return text + "]";
    }
    default:
      return "";
  }
}

std::vector<c10::OperatorName> all_operators() {
  std::vector<c10::OperatorName> names = c10::Dispatcher::singleton().getAllOpNames();
  std::erase_if(names, [](const c10::OperatorName& name) {
    return !name.name.starts_with("aten::") && !name.name.starts_with("halftone::");
  });
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return toString(a) < toString(b); });
  return names;
}

}  // namespace

std::string mutate_graph(const std::string& text, Dice& dice, const std::vector<std::string>& targets) {
  GraphMutation mutation(tokens_of(text), dice, targets);
  do {
    mutation.step();
  } while (dice.chance(35));
  return mutation.text();
}

std::string insert_call(const std::string& text, Dice& dice) {
  static const std::vector<c10::OperatorName> operators = all_operators();
  // Values of the top graph's inputs are defined everywhere; later ones are tried too.
  std::vector<std::string> values;
  for (const Token& token : tokens_of(text.substr(0, text.find("return")))) {
    if (token.kind == Kind::kValue) values.push_back(token.text);
  }
  const size_t before = text.rfind("  return ");
  if (values.empty() || before == std::string::npos) return text;
  const c10::OperatorName& name = operators[dice.pick(operators.size())];
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle) return text;
  std::string call;
  for (const c10::Argument& argument : handle->schema().arguments()) {
    if (argument.default_value() && dice.chance(60)) continue;
    const std::string value = argument_of(argument.type(), dice, values);
    if (value.empty()) continue;
    call += fmt::format("{}{}={}", call.empty() ? "" : ", ", argument.name(), value);
  }
  std::string results;
  for (size_t i = 0; i < handle->schema().returns().size(); ++i) {
    const c10::TypeKind kind = handle->schema().returns()[i].type()->kind();
    const char* type = kind == c10::TypeKind::TensorType ? "tensor"
                       : kind == c10::TypeKind::ListType ? "list"
                       : kind == c10::TypeKind::IntType  ? "int"
                       : kind == c10::TypeKind::BoolType ? "bool"
                                                         : "float";
    results += fmt::format("{}%call{}: {}", i == 0 ? "" : ", ", i, type);
  }
  std::string line =
      fmt::format("  {}{}{}({})\n", results, results.empty() ? "" : " = ", toString(name), call);
  std::string changed = text;
  changed.insert(before, line);
  // The last result becomes that of the call, so that it is not dropped as dead.
  if (results.find("%call0: tensor") != std::string::npos) {
    const size_t last = changed.rfind('%');
    const size_t end = changed.find_first_of(" ,\n", last);
    if (last > before && end != std::string::npos) changed.replace(last, end - last, "%call0");
  }
  return changed;
}

}  // namespace halftone::hostile
