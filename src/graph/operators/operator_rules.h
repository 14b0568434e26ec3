// The rules by which an operator of torch's dispatcher may, or may not, be called by a graph from a file.
// They make the table of allowed_operators.inc, and they say why an operator is not in it.
#pragma once

#include <span>
#include <string_view>

namespace c10 {
struct FunctionSchema;
}

namespace halftone {

struct OperatorRule {
  std::string_view name;    ///< "storage"
  bool allows = false;      ///< else it refuses
  std::string_view reason;  ///< what such operators do, as the end of a sentence: "reads and writes files"
};

/// In the order in which they are asked; the last one takes every schema.
std::span<const OperatorRule> operator_rules();

/// The first rule that the schema falls under.
const OperatorRule& rule_of(const c10::FunctionSchema& schema);

}  // namespace halftone
