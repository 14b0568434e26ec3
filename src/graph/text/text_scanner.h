// The tokens of the graph's text form, with places for error messages. Never reads past the end, whatever the
// bytes are.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "halftone/graph/symbolic.h"

namespace halftone {

class TextScanner {
 public:
  explicit TextScanner(std::string_view text);

  /// Where the next token begins.
  size_t position();
  size_t line_of(size_t offset) const;
  /// kInvalidArgument "line L, column C: message" (columns count bytes).
  [[noreturn]] void fail_at(size_t offset, std::string_view message) const;
  /// "expected <wanted>, found <the next token>" at the next token.
  [[noreturn]] void fail_expected(std::string_view wanted);

  bool at_end();
  /// The next byte, 0 at the end.
  char peek();
  bool accept(char c);
  void expect(char c);
  /// Letters, digits, _ . and :, beginning with a letter or _; empty if there is none. "dtype:f32" and
  /// "aten::add.Tensor" are one word each; a colon that ends a word does not belong to it.
  std::string_view peek_word();
  bool accept_word(std::string_view word);
  std::string_view take_word(std::string_view wanted);

  /// The word before a =, which is taken too; empty, and nothing taken, where there is none.
  std::string_view try_take_label();

  /// What follows a %: a plain or a quoted name.
  std::string take_value_name();
  std::string take_string();
  /// A constant expression over sizes.
  SymExpr take_expression();
  /// An integer or, where it has a point or an exponent, a double. Only if peek() is a digit or a minus
  /// sign.
  std::variant<int64_t, double> take_number();

 private:
  void skip_space();
  char take_escape();
  std::string_view text_;
  size_t position_ = 0;
  std::vector<size_t> line_starts_;
};

}  // namespace halftone
