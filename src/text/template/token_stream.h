// The tokens of a template one after the other, for the parsers.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "halftone/base/error.h"
#include "text/template/lexer.h"

namespace halftone::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view name) : tokens_(std::move(tokens)), name_(name) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const { return is_a(TokenKind::kOperator, text); }
  bool is_name(std::string_view text) const { return is_a(TokenKind::kName, text); }
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    for (const std::string_view each : names)
      if (is_name(each)) return true;
    return false;
  }

  bool skip_operator(std::string_view text) { return is_operator(text) && (next(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (next(), true); }

  Token expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) fail_expected(what);
    return next();
  }
  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail_expected(fmt::format("\"{}\"", text));
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    fail_here(ErrorCode::kCorruptFile, fmt::format("{} was expected, not {}", what, description()));
  }
  [[noreturn]] void fail_here(ErrorCode code, std::string_view message) const {
    fail_at(current().line, code, message);
  }
  [[noreturn]] void fail_at(int line, ErrorCode code, std::string_view message) const {
    throw Error(code, fmt::format("{}: line {}: {}", name_, line, message));
  }

 private:
  bool is_a(TokenKind kind, std::string_view text) const {
    return current().kind == kind && current().text == text;
  }

  /// The current token, for messages.
  std::string description() const;

  std::vector<Token> tokens_;
  std::string_view name_;
  size_t at_ = 0;
};

/// Counts how deep parsing functions are within each other; the syntax tree is bounded by it too.
inline constexpr int kMaxDepth = 150;

class DeeperParse {
 public:
  DeeperParse(int& depth, const TokenStream& tokens) : depth_(depth) {
    if (++depth_ > kMaxDepth) {
      --depth_;
      tokens.fail_here(ErrorCode::kCorruptFile, fmt::format("nested deeper than {}", kMaxDepth));
    }
  }
  ~DeeperParse() { --depth_; }
  DeeperParse(const DeeperParse&) = delete;
  DeeperParse& operator=(const DeeperParse&) = delete;

 private:
  int& depth_;
};

}  // namespace halftone::jinja
