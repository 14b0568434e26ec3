// The parts of rendering that call each other: statements (render.cpp) and expressions (evaluate.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "text/template/calls.h"
#include "text/template/rendering.h"
#include "text/template/syntax.h"

namespace halftone::jinja {

/// What a statement says about those behind it.
enum class Flow { kNext, kBreak, kContinue };

class Renderer {
 public:
  Renderer(Rendering& rendering, Scope& top) : r_(rendering), scope_(&top) {}

  Flow run(const StatementList& list, std::string& out);
  Value evaluate(const Expression& expression);
  Value call_macro(const Macro& macro, const Arguments& arguments);

  /// The next item of a loop that its condition lets through.
  std::optional<Value> next_item(Loop& loop);

 private:
  /// A scope within the current one, for as long as this lives.
  class Inner {
   public:
    Inner(Renderer& renderer, Scope* parent);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Renderer& renderer_;
    Scope* before_;
    std::unique_ptr<Scope> scope_;
  };
  /// Bounds how deep functions of the renderer are in each other: templates nest, and macros call themselves.
  class Deeper {
   public:
    explicit Deeper(Renderer& renderer) : depth_(renderer.depth_) {
      if (depth_ >= kMaxNesting)
        renderer.r_.fail(ErrorCode::kCorruptFile, "the template calls itself or nests deeper than {}",
                         kMaxNesting);
      ++depth_;
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    int& depth_;
  };

  Flow run_one(const Statement& statement, std::string& out);
  Flow run_if(const Statement& statement, std::string& out);
  void run_for(const Statement& statement, std::string& out);
  void run_set(const Statement& statement);
  std::string run_inner(const StatementList& list);
  void emit(std::string_view text, std::string& out);

  void assign(const Statement& statement, const Value& value);
  void assign_attribute(const Target& target, const Value& value);
  void set(std::string_view name, const Value& value);
  Value look_up(std::string_view name);

  Value evaluate_here(const Expression& expression);
  Value evaluate_or_none(const ExpressionPtr& expression);
  Value evaluate_call(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_join(const Expression& expression);
  bool compare(const Expression& expression);
  std::vector<Value> evaluate_parts(const Expression& expression, size_t first);
  Arguments arguments_of(const Expression& expression);
  Value filtered(const Expression& expression, const Value* input);

  Rendering& r_;
  Scope* scope_;
  int depth_ = 0;
};

}  // namespace halftone::jinja
