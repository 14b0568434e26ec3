// A template's text as tokens, by the rules of Jinja's lexer with trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halftone::jinja {

enum class TokenKind {
  kData,  ///< text between tags
  kBlockBegin,
  kBlockEnd,
  kOutputBegin,
  kOutputEnd,
  kName,
  kString,  ///< text: what it means, without quotes
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;
};

/// Comments are left out. Ends with kEnd. `name` stands first in errors: kCorruptFile with the line.
std::vector<Token> tokenize(std::string_view text, std::string_view name);

}  // namespace halftone::jinja
