// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/template/value.h"

namespace halftone::jinja {

enum class ExpressionKind {
  kConstant,   ///< constant; a text is in `text`
  kName,       ///< text
  kAttribute,  ///< parts[0].text
  kItem,       ///< parts[0][parts[1]]
  kSlice,      ///< parts[0][parts[1]:parts[2]:parts[3]], each of the three may be missing
  kCall,       ///< parts[0](the other parts, keywords)
  kFilter,     ///< parts[0] | text(the other parts, keywords); no parts[0] in {% set x | text %}
  kTest,       ///< parts[0] is text(the other parts)
  kNot,
  kNegative,
  kPositive,
  kBinary,   ///< parts[0] text parts[1]
  kCompare,  ///< parts[0] operators[0] parts[1] operators[1] parts[2] …
  kAnd,      ///< of two and more
  kOr,
  kJoin,         ///< a ~ b ~ c
  kConditional,  ///< parts[1] if parts[0] else parts[2], which may be missing
  kList,
  kTuple,
  kDict,  ///< keys and values in turn
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Keyword {
  std::string name;
  ExpressionPtr value;
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 0;
  int depth = 1;  ///< of the tree below; bounded, because rendering and freeing are recursive
  std::string text;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<Keyword> keywords;
  std::vector<std::string> operators;
};

enum class StatementKind {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kGeneration,
  kBreak,
  kContinue
};

struct StatementList;

struct Branch {
  ExpressionPtr condition;  ///< missing: else
  std::unique_ptr<StatementList> body;
};

/// What is assigned to: a name, or an attribute of a namespace.
struct Target {
  std::string name;
  std::string attribute;  ///< of the namespace `name`; empty: the name itself
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 0;
  std::string text;         ///< kText; kMacro: its name
  ExpressionPtr value;      ///< kOutput, kSet; kFor: what is iterated over; kSetBlock: its filters, if any
  ExpressionPtr condition;  ///< kFor: for … if condition
  std::vector<Target> targets;          ///< kSet, kSetBlock, kFor; more than one: the value is taken apart
  bool unpack = false;                  ///< the targets are a tuple, be it of one
  std::vector<Branch> branches;         ///< kIf
  std::vector<Keyword> parameters;      ///< kMacro; without a default: no value
  std::unique_ptr<StatementList> body;  ///< kFor, kSetBlock, kMacro, kGeneration
  std::unique_ptr<StatementList> otherwise;  ///< kFor: for an empty iteration; may be missing
};

struct StatementList {
  std::vector<Statement> statements;
};

}  // namespace halftone::jinja
