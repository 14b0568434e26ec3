#include "text/template/parser.h"

#include <optional>

#include "text/template/expression_parser.h"

namespace halftone::jinja {

namespace {

using EndNames = std::initializer_list<std::string_view>;

class Parser {
 public:
  Parser(std::string_view text, std::string_view name)
      : tokens_(tokenize(text, name), name), expressions_(tokens_, depth_) {}

  StatementList run() {
    StatementList list;
    statements(list, {});
    return list;
  }

 private:
  /// Up to the end, or to a tag of that name, whose name is then current.
  void statements(StatementList& list, EndNames ends) {
    const DeeperParse deeper(depth_, tokens_);
    while (!tokens_.is(TokenKind::kEnd)) {
      if (tokens_.is(TokenKind::kData)) {
        const Token data = tokens_.next();
        Statement& statement = add(list, StatementKind::kText, data.line);
        statement.text = data.text;
      } else if (tokens_.is(TokenKind::kOutputBegin)) {
        Statement& statement = add(list, StatementKind::kOutput, tokens_.next().line);
        statement.value = expressions_.tuple();
        tokens_.expect(TokenKind::kOutputEnd, "\"}}\"");
      } else {
        tokens_.expect(TokenKind::kBlockBegin, "a tag");
        if (tokens_.is_one_of(ends)) return;
        tag(list);
        tokens_.expect(TokenKind::kBlockEnd, "\"%}\"");
      }
    }
  }

  static Statement& add(StatementList& list, StatementKind kind, int line) {
    Statement& statement = list.statements.emplace_back();
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  /// What stands in a tag's block, from the end of the tag to one of the tags that end it, whose name is then current.
  std::unique_ptr<StatementList> block(int line, EndNames ends) {
    tokens_.skip_operator(":");
    tokens_.expect(TokenKind::kBlockEnd, "\"%}\"");
    auto list = std::make_unique<StatementList>();
    statements(*list, ends);
    if (tokens_.is(TokenKind::kEnd))
      tokens_.fail_at(line, ErrorCode::kCorruptFile,
                      fmt::format("there is no {{% {} %}}", std::data(ends)[ends.size() - 1]));
    return list;
  }

  /// The same where only one tag can end it; goes behind its name.
  std::unique_ptr<StatementList> whole_block(int line, std::string_view end) {
    auto list = block(line, {end});
    tokens_.next();
    return list;
  }

  void tag(StatementList& list) {
    const Token name = tokens_.expect(TokenKind::kName, "the name of a tag");
    const auto make = [&](StatementKind kind) -> Statement& { return add(list, kind, name.line); };
    if (name.text == "if") return parse_if(make(StatementKind::kIf));
    if (name.text == "for") return parse_for(make(StatementKind::kFor));
    if (name.text == "set") return parse_set(make(StatementKind::kSet));
    if (name.text == "macro") return parse_macro(make(StatementKind::kMacro));
    if (name.text == "generation") {
      make(StatementKind::kGeneration).body = whole_block(name.line, "endgeneration");
    } else if (name.text == "break" || name.text == "continue") {
      if (loops_ == 0)
        tokens_.fail_at(name.line, ErrorCode::kCorruptFile,
                        fmt::format("{{% {} %}} outside of a loop", name.text));
      make(name.text == "break" ? StatementKind::kBreak : StatementKind::kContinue);
    } else {
      refuse(name);
    }
  }

  [[noreturn]] void refuse(const Token& name) const {
    constexpr std::string_view kEnds[] = {"elif",   "else",     "endif",         "endfor",
                                          "endset", "endmacro", "endgeneration", "endraw"};
    for (const std::string_view end : kEnds) {
      if (name.text == end)
        tokens_.fail_at(name.line, ErrorCode::kCorruptFile,
                        fmt::format("{{% {} %}} ends nothing", name.text));
    }
    tokens_.fail_at(name.line, ErrorCode::kUnsupported,
                    fmt::format("the tag {{% {} %}} is not supported", name.text.substr(0, 60)));
  }

  void parse_if(Statement& statement) {
    const int line = statement.line;
    bool has_else = false;
    while (true) {
      Branch branch;
      if (!has_else) branch.condition = expressions_.tuple_without_condition();
      branch.body = has_else ? block(line, {"endif"}) : block(line, {"elif", "else", "endif"});
      statement.branches.push_back(std::move(branch));
      const std::string end = tokens_.next().text;
      if (end == "endif") break;
      has_else = end == "else";
    }
  }

  std::string target_name() {
    const Token name = tokens_.expect(TokenKind::kName, "a name");
    for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None", "loop"}) {
      if (name.text == reserved)
        tokens_.fail_at(name.line, ErrorCode::kCorruptFile,
                        fmt::format("\"{}\" cannot be assigned to", name.text));
    }
    return name.text;
  }

  void targets(Statement& statement) {
    const bool parentheses = tokens_.skip_operator("(");
    while (true) {
      Target target{target_name(), ""};
      if (statement.kind == StatementKind::kSet && tokens_.skip_operator("."))
        target.attribute = tokens_.expect(TokenKind::kName, "a name").text;
      statement.targets.push_back(std::move(target));
      if (!tokens_.skip_operator(",")) break;
      statement.unpack = true;
      if (tokens_.is_operator("("))
        tokens_.fail_here(ErrorCode::kUnsupported, "a tuple of tuples to assign to is not supported");
      if (!tokens_.is(TokenKind::kName) || tokens_.is_name("in")) break;
    }
    if (parentheses) tokens_.expect_operator(")");
  }

  void parse_for(Statement& statement) {
    const int line = statement.line;
    targets(statement);
    if (!tokens_.skip_name("in")) tokens_.fail_expected("\"in\"");
    statement.value = expressions_.tuple_without_condition();
    if (tokens_.skip_name("if")) statement.condition = expressions_.expression();
    if (tokens_.is_name("recursive"))
      tokens_.fail_here(ErrorCode::kUnsupported, "a recursive {% for %} is not supported");
    ++loops_;
    statement.body = block(line, {"else", "endfor"});
    --loops_;
    if (tokens_.next().text == "else") statement.otherwise = whole_block(line, "endfor");
  }

  void parse_set(Statement& statement) {
    targets(statement);
    if (tokens_.skip_operator("=")) {
      statement.value = expressions_.tuple();
      return;
    }
    statement.kind = StatementKind::kSetBlock;
    statement.value = expressions_.filters(nullptr);
    statement.body = whole_block(statement.line, "endset");
  }

  void parse_macro(Statement& statement) {
    statement.text = target_name();
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      if (!statement.parameters.empty()) tokens_.expect_operator(",");
      Keyword parameter{target_name(), nullptr};
      if (tokens_.skip_operator("=")) {
        parameter.value = expressions_.expression();
      } else if (!statement.parameters.empty() && statement.parameters.back().value != nullptr) {
        tokens_.fail_here(ErrorCode::kCorruptFile, "a parameter without a default behind one with a default");
      }
      statement.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    // A loop around the macro is none that {% break %} could leave.
    const int loops = std::exchange(loops_, 0);
    statement.body = whole_block(statement.line, "endmacro");
    loops_ = loops;
  }

  TokenStream tokens_;
  int depth_ = 0;
  int loops_ = 0;
  ExpressionParser expressions_;
};

}  // namespace

StatementList parse_template(std::string_view text, std::string_view name) {
  return Parser(text, name).run();
}

}  // namespace halftone::jinja
