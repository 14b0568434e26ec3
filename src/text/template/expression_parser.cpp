#include "text/template/expression_parser.h"

#include <algorithm>
#include <charconv>

namespace halftone::jinja {

std::string TokenStream::description() const {
  const std::string text = current().text.substr(0, 40);
  switch (current().kind) {
    case TokenKind::kData:
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kBlockBegin:
    case TokenKind::kOutputBegin:
      return "a tag";
    case TokenKind::kBlockEnd:
    case TokenKind::kOutputEnd:
      return "the end of the tag";
    case TokenKind::kString:
      return "a text";
    default:
      return fmt::format("\"{}\"", text);
  }
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, std::string text) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  node->text = std::move(text);
  return node;
}

ExpressionPtr ExpressionParser::make_text(int line, std::string text) const {
  ExpressionPtr node = make(ExpressionKind::kConstant, line, std::move(text));
  node->constant = static_cast<const std::string*>(&node->text);
  return node;
}

/// A null part stands for one that is missing.
void ExpressionParser::add(Expression& to, ExpressionPtr part) const {
  if (part != nullptr) to.depth = std::max(to.depth, part->depth + 1);
  to.parts.push_back(std::move(part));
  if (to.depth > kMaxDepth)
    tokens_.fail_at(to.line, ErrorCode::kCorruptFile,
                    fmt::format("an expression nested deeper than {}", kMaxDepth));
}

ExpressionPtr ExpressionParser::expression() {
  const DeeperParse deeper(depth_, tokens_);
  ExpressionPtr value = any_of();
  while (tokens_.is_name("if")) {
    ExpressionPtr node = make(ExpressionKind::kConditional, tokens_.next().line);
    add(*node, any_of());
    add(*node, std::move(value));
    add(*node, tokens_.skip_name("else") ? expression() : nullptr);
    value = std::move(node);
  }
  return value;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, bool in_parentheses) {
  const DeeperParse deeper(depth_, tokens_);
  const int line = tokens_.current().line;
  ExpressionPtr node = make(ExpressionKind::kTuple, line);
  bool is_tuple = false;
  const auto at_end = [&] {
    return tokens_.is(TokenKind::kBlockEnd) || tokens_.is(TokenKind::kOutputEnd) || tokens_.is_operator(")");
  };
  while (!at_end()) {
    add(*node, with_condition ? expression() : any_of());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple || (node->parts.empty() && in_parentheses)) return node;
  if (node->parts.empty()) tokens_.fail_expected("an expression");
  return std::move(node->parts.front());
}

/// operand separator operand …: one node for all of them, or the operand alone.
ExpressionPtr ExpressionParser::chain(ExpressionKind kind, std::string_view separator, Operand operand) {
  const auto skip = [&] { return tokens_.skip_name(separator) || tokens_.skip_operator(separator); };
  const int line = tokens_.current().line;
  ExpressionPtr first = (this->*operand)();
  if (!skip()) return first;
  ExpressionPtr node = make(kind, line);
  add(*node, std::move(first));
  do {
    add(*node, (this->*operand)());
  } while (skip());
  return node;
}

/// operand operator operand …: from the left.
ExpressionPtr ExpressionParser::from_left(std::initializer_list<std::string_view> operators,
                                          Operand operand) {
  ExpressionPtr value = (this->*operand)();
  while (std::any_of(operators.begin(), operators.end(),
                     [&](std::string_view each) { return tokens_.is_operator(each); })) {
    const Token op = tokens_.next();
    ExpressionPtr node = make(ExpressionKind::kBinary, op.line, op.text);
    add(*node, std::move(value));
    add(*node, (this->*operand)());
    value = std::move(node);
  }
  return value;
}

ExpressionPtr ExpressionParser::any_of() {
  return chain(ExpressionKind::kOr, "or", &ExpressionParser::all_of);
}
ExpressionPtr ExpressionParser::all_of() {
  return chain(ExpressionKind::kAnd, "and", &ExpressionParser::negation);
}

ExpressionPtr ExpressionParser::negation() {
  const DeeperParse deeper(depth_, tokens_);
  if (!tokens_.is_name("not")) return comparison();
  ExpressionPtr node = make(ExpressionKind::kNot, tokens_.next().line);
  add(*node, negation());
  return node;
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr value = sum();
  ExpressionPtr node;
  while (true) {
    std::string op;
    const Token& token = tokens_.current();
    for (const std::string_view each : {"==", "!=", ">", ">=", "<", "<="})
      if (tokens_.is_operator(each)) op = each;
    if (tokens_.is_name("in")) op = "in";
    if (tokens_.is_name("not") && tokens_.following().kind == TokenKind::kName &&
        tokens_.following().text == "in")
      op = "not in";
    if (op.empty()) break;
    if (node == nullptr) {
      node = make(ExpressionKind::kCompare, token.line);
      add(*node, std::move(value));
    }
    if (op == "not in") tokens_.next();
    tokens_.next();
    node->operators.push_back(op);
    add(*node, sum());
  }
  return node != nullptr ? std::move(node) : std::move(value);
}

ExpressionPtr ExpressionParser::sum() {
  return from_left({"+", "-"}, &ExpressionParser::join);
}
ExpressionPtr ExpressionParser::join() {
  return chain(ExpressionKind::kJoin, "~", &ExpressionParser::product);
}
ExpressionPtr ExpressionParser::product() {
  return from_left({"*", "/", "//", "%"}, &ExpressionParser::power);
}
ExpressionPtr ExpressionParser::power() {
  return from_left({"**"}, &ExpressionParser::unary);
}

ExpressionPtr ExpressionParser::unary() {
  return filters(signed_value());
}

ExpressionPtr ExpressionParser::signed_value() {
  const DeeperParse deeper(depth_, tokens_);
  ExpressionPtr value;
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const Token sign = tokens_.next();
    value = make(sign.text == "-" ? ExpressionKind::kNegative : ExpressionKind::kPositive, sign.line);
    add(*value, signed_value());
  } else {
    value = primary();
  }
  return postfix(std::move(value));
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  if (token.kind == TokenKind::kName) {
    const std::string name = tokens_.next().text;
    ExpressionPtr node = make(ExpressionKind::kConstant, line);
    if (name == "true" || name == "True") {
      node->constant = true;
    } else if (name == "false" || name == "False") {
      node->constant = false;
    } else if (name == "none" || name == "None") {
      node->constant = None{};
    } else {
      return make(ExpressionKind::kName, line, name);
    }
    return node;
  }
  if (token.kind == TokenKind::kString) {
    std::string text;
    while (tokens_.is(TokenKind::kString)) text += tokens_.next().text;
    return make_text(line, std::move(text));
  }
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return number();
  if (tokens_.is_operator("[")) return list();
  if (tokens_.is_operator("{")) return dict();
  if (!tokens_.skip_operator("(")) tokens_.fail_expected("an expression");
  ExpressionPtr value = tuple(true, true);
  tokens_.expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::number() {
  const Token token = tokens_.next();
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  ExpressionPtr node = make(ExpressionKind::kConstant, token.line);
  std::errc error{};
  if (token.kind == TokenKind::kInteger) {
    int64_t value = 0;
    error = std::from_chars(begin, end, value).ec;
    node->constant = value;
  } else {
    double value = 0;
    error = std::from_chars(begin, end, value).ec;
    node->constant = value;
  }
  if (error != std::errc())
    tokens_.fail_at(token.line, ErrorCode::kUnsupported,
                    fmt::format("the number {} is not supported", token.text.substr(0, 60)));
  return node;
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr node = make(ExpressionKind::kList, tokens_.next().line);
  while (!tokens_.is_operator("]")) {
    if (!node->parts.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator("]")) break;
    add(*node, expression());
  }
  tokens_.expect_operator("]");
  return node;
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr node = make(ExpressionKind::kDict, tokens_.next().line);
  while (!tokens_.is_operator("}")) {
    if (!node->parts.empty()) tokens_.expect_operator(",");
    if (tokens_.is_operator("}")) break;
    add(*node, expression());
    tokens_.expect_operator(":");
    add(*node, expression());
  }
  tokens_.expect_operator("}");
  return node;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  while (true) {
    if (tokens_.is_operator(".") || tokens_.is_operator("[")) {
      value = subscript(std::move(value));
    } else if (tokens_.is_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value) {
  while (true) {
    if (tokens_.is_operator("|")) {
      value = filter(std::move(value));
    } else if (value != nullptr && tokens_.is_name("is")) {
      value = test(std::move(value));
    } else if (value != nullptr && tokens_.is_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  const Token token = tokens_.next();
  if (token.text == ".") {
    if (tokens_.is(TokenKind::kName)) {
      ExpressionPtr node = make(ExpressionKind::kAttribute, token.line, tokens_.next().text);
      add(*node, std::move(value));
      return node;
    }
    if (!tokens_.is(TokenKind::kInteger)) tokens_.fail_expected("a name");
    ExpressionPtr node = make(ExpressionKind::kItem, token.line);
    add(*node, std::move(value));
    add(*node, number());
    return node;
  }
  ExpressionPtr node = make(ExpressionKind::kItem, token.line);
  add(*node, std::move(value));
  add(*node, tokens_.is_operator(":") ? nullptr : expression());
  if (tokens_.is_operator(":")) node->kind = ExpressionKind::kSlice;
  const auto bound = [&]() -> ExpressionPtr {
    if (!tokens_.skip_operator(":")) return nullptr;
    return tokens_.is_operator(":") || tokens_.is_operator("]") || tokens_.is_operator(",") ? nullptr
                                                                                            : expression();
  };
  if (node->kind == ExpressionKind::kSlice) {
    add(*node, bound());
    add(*node, bound());
  }
  if (tokens_.is_operator(","))
    tokens_.fail_here(ErrorCode::kUnsupported, "an index of several parts is not supported");
  tokens_.expect_operator("]");
  return node;
}

void ExpressionParser::arguments(Expression& to) {
  tokens_.expect_operator("(");
  bool first = true;
  while (!tokens_.is_operator(")")) {
    if (!first) tokens_.expect_operator(",");
    if (tokens_.is_operator(")")) break;
    first = false;
    if (tokens_.is_operator("*") || tokens_.is_operator("**"))
      tokens_.fail_here(ErrorCode::kUnsupported,
                        fmt::format("the argument {}… is not supported", tokens_.current().text));
    const bool has_name = tokens_.is(TokenKind::kName) && tokens_.following().kind == TokenKind::kOperator &&
                          tokens_.following().text == "=";
    if (has_name) {
      std::string name = tokens_.next().text;
      tokens_.next();
      ExpressionPtr value = expression();
      to.depth = std::max(to.depth, value->depth + 1);
      to.keywords.push_back({std::move(name), std::move(value)});
    } else {
      if (!to.keywords.empty())
        tokens_.fail_here(ErrorCode::kCorruptFile, "an argument without a name behind one with a name");
      add(to, expression());
    }
  }
  tokens_.expect_operator(")");
}

ExpressionPtr ExpressionParser::call(ExpressionPtr value) {
  ExpressionPtr node = make(ExpressionKind::kCall, tokens_.current().line);
  add(*node, std::move(value));
  arguments(*node);
  return node;
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect(TokenKind::kName, "a name").text;
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect(TokenKind::kName, "a name").text;
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  ExpressionPtr node = make(ExpressionKind::kFilter, tokens_.next().line);
  node->text = dotted_name();
  add(*node, std::move(value));
  if (tokens_.is_operator("(")) arguments(*node);
  return node;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  ExpressionPtr node = make(ExpressionKind::kTest, tokens_.next().line);
  const bool negated = tokens_.skip_name("not");
  node->text = dotted_name();
  add(*node, std::move(value));
  const bool bare = tokens_.is(TokenKind::kName) || tokens_.is(TokenKind::kString) ||
                    tokens_.is(TokenKind::kInteger) || tokens_.is(TokenKind::kFloat) ||
                    tokens_.is_operator("[") || tokens_.is_operator("{");
  if (tokens_.is_operator("(")) {
    arguments(*node);
  } else if (bare && !tokens_.is_one_of({"else", "or", "and"})) {
    if (tokens_.is_name("is")) tokens_.fail_here(ErrorCode::kCorruptFile, "\"is\" behind \"is\"");
    add(*node, postfix(primary()));
  }
  if (!negated) return node;
  ExpressionPtr inverse = make(ExpressionKind::kNot, node->line);
  add(*inverse, std::move(node));
  return inverse;
}

}  // namespace halftone::jinja
