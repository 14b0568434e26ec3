// Expressions of templates.
#pragma once

#include "text/template/syntax.h"
#include "text/template/token_stream.h"

namespace halftone::jinja {

/// Each function parses what its name says from where the tokens are and leaves them behind it.
class ExpressionParser {
 public:
  /// `depth` is shared with the parser of statements.
  ExpressionParser(TokenStream& tokens, int& depth) : tokens_(tokens), depth_(depth) {}

  ExpressionPtr expression();
  /// Without an inline if: what {% if %} and {% for … in %} take.
  ExpressionPtr tuple_without_condition() { return tuple(false, false); }
  /// An expression, or several with commas between them.
  ExpressionPtr tuple() { return tuple(true, false); }
  /// | name(…) | name(…): the first has no parts[0] if `value` is null.
  ExpressionPtr filters(ExpressionPtr value);

 private:
  using Operand = ExpressionPtr (ExpressionParser::*)();
  ExpressionPtr chain(ExpressionKind kind, std::string_view separator, Operand operand);
  ExpressionPtr from_left(std::initializer_list<std::string_view> operators, Operand operand);
  ExpressionPtr tuple(bool with_condition, bool in_parentheses);
  ExpressionPtr any_of();
  ExpressionPtr all_of();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr join();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary();
  ExpressionPtr signed_value();
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  ExpressionPtr call(ExpressionPtr value);
  void arguments(Expression& to);
  ExpressionPtr number();
  std::string dotted_name();

  ExpressionPtr make(ExpressionKind kind, int line, std::string text = "") const;
  ExpressionPtr make_text(int line, std::string text) const;
  void add(Expression& to, ExpressionPtr part) const;

  TokenStream& tokens_;
  int& depth_;
};

}  // namespace halftone::jinja
