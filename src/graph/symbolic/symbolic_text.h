// The text form of symbolic sizes, for the readers that meet it inside longer text.
#pragma once

#include <string>
#include <string_view>

#include "halftone/graph/symbolic.h"

namespace halftone {

/// "max", "//", …: for messages.
std::string_view symbolic_op_name(SymExpr::Op op);
/// A letter or _, then letters, digits and _; not a word of the grammar (and, or, not, true, false, True,
/// False).
bool is_symbol_name(std::string_view name);

/// What parse_symbolic throws: the error, and the byte of the text where it is.
class SymbolicSyntaxError : public Error {
 public:
  SymbolicSyntaxError(size_t offset, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), offset_(offset) {}
  size_t offset() const noexcept { return offset_; }

 private:
  size_t offset_;
};

/// Reads one expression that begins at `position` and moves `position` to the first byte that is not part of
/// it. Besides what to_string() writes it takes the spelling of exported files: Max(…), Mod(…), FloorDiv(…),
/// Eq(…), &, |, True.
SymExpr parse_symbolic(std::string_view text, size_t& position);

}  // namespace halftone
