#include "text/template/render.h"

#include "text/template/operations.h"
#include "text/template/renderer.h"
#include "text/template/text_forms.h"

namespace halftone::jinja {

Renderer::Inner::Inner(Renderer& renderer, Scope* parent)
    : renderer_(renderer),
      before_(renderer.scope_),
      scope_(std::make_unique<Scope>(Scope{parent, {}, false})) {
  renderer_.scope_ = scope_.get();
}

Renderer::Inner::~Inner() {
  renderer_.scope_ = before_;
  if (scope_->captured) renderer_.r_.keep(std::move(scope_));
}

Flow Renderer::run(const StatementList& list, std::string& out) {
  const Deeper deeper(*this);
  for (const Statement& statement : list.statements) {
    r_.spend(1);
    r_.line = statement.line;
    const Flow flow = run_one(statement, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Renderer::run_one(const Statement& statement, std::string& out) {
  switch (statement.kind) {
    case StatementKind::kText:
      emit(statement.text, out);
      return Flow::kNext;
    case StatementKind::kOutput: {
      const Value value = evaluate(*statement.value);
      const std::string* text = try_text(value);
      emit(text != nullptr ? *text : text_of(r_, value), out);
      return Flow::kNext;
    }
    case StatementKind::kIf:
      return run_if(statement, out);
    case StatementKind::kFor:
      run_for(statement, out);
      return Flow::kNext;
    case StatementKind::kSet:
    case StatementKind::kSetBlock:
      run_set(statement);
      return Flow::kNext;
    case StatementKind::kMacro:
      set(statement.text, r_.macro(statement, *scope_));
      return Flow::kNext;
    case StatementKind::kGeneration:
      emit(run_inner(*statement.body), out);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Renderer::emit(std::string_view text, std::string& out) {
  r_.spend_on(text.size());
  if (text.size() > kMaxOutput - std::min(out.size(), kMaxOutput))
    r_.fail(ErrorCode::kCorruptFile, "the template makes more than {} bytes of text", kMaxOutput);
  out += text;
}

Flow Renderer::run_if(const Statement& statement, std::string& out) {
  for (const Branch& branch : statement.branches)
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition))) return run(*branch.body, out);
  return Flow::kNext;
}

std::optional<Value> Renderer::next_item(Loop& loop) {
  while (loop.next < loop.items.size()) {
    r_.spend(1);
    const Value item = loop.items[loop.next++];
    if (loop.statement->condition == nullptr) return item;
    const Inner inner(*this, loop.scope);
    assign(*loop.statement, item);
    if (is_true(evaluate(*loop.statement->condition))) return item;
  }
  return std::nullopt;
}

void Renderer::run_for(const Statement& statement, std::string& out) {
  Loop* loop = r_.loop();
  const Value iterated = evaluate(*statement.value);
  loop->statement = &statement;
  loop->scope = scope_;
  loop->items = items_of(r_, iterated);
  r_.reserve(sizeof(Value) * loop->items.size());
  loop->renderer = this;
  while (true) {
    std::optional<Value> item;
    if (!loop->ahead.empty()) {
      item = loop->ahead.front();
      loop->ahead.pop_front();
    } else {
      item = next_item(*loop);
    }
    if (!item) break;
    loop->previous = loop->index0 < 0 ? Undefined{"loop.previtem"} : loop->current;
    loop->current = *item;
    ++loop->index0;
    const Inner inner(*this, scope_);
    set("loop", loop);
    assign(statement, *item);
    if (run(*statement.body, out) == Flow::kBreak) break;
  }
  if (loop->index0 < 0 && statement.otherwise != nullptr) {
    const Inner inner(*this, scope_);
    run(*statement.otherwise, out);
  }
}

Value loop_attribute(Rendering& rendering, Loop& loop, std::string_view name) {
  const auto look_ahead = [&](size_t count) {
    while (loop.ahead.size() < count) {
      const auto item = loop.renderer->next_item(loop);
      if (!item) break;
      rendering.reserve(sizeof(Value));
      loop.ahead.push_back(*item);
    }
    return static_cast<int64_t>(loop.ahead.size());
  };
  const auto length = [&] { return loop.index0 + 1 + look_ahead(loop.items.size()); };
  if (name == "index0") return loop.index0;
  if (name == "index") return loop.index0 + 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return look_ahead(1) == 0;
  if (name == "length") return length();
  if (name == "revindex") return length() - loop.index0;
  if (name == "revindex0") return length() - loop.index0 - 1;
  if (name == "depth") return int64_t{1};  // of a recursion, which there is not
  if (name == "depth0") return int64_t{0};
  if (name == "previtem") return loop.previous;
  if (name == "nextitem") return look_ahead(1) > 0 ? loop.ahead.front() : Value(Undefined{"loop.nextitem"});
  if (name == "cycle") return rendering.method(&loop, name);
  if (name == "changed") rendering.fail_unsupported("loop.changed()");
  return Undefined{name};
}

void Renderer::run_set(const Statement& statement) {
  if (statement.kind == StatementKind::kSet) return assign(statement, evaluate(*statement.value));
  Value value = r_.text(run_inner(*statement.body));
  if (statement.value != nullptr) value = filtered(*statement.value, &value);
  assign(statement, value);
}

std::string Renderer::run_inner(const StatementList& list) {
  const Inner inner(*this, scope_);
  std::string out;
  run(list, out);
  r_.reserve(out.size());
  return out;
}

void Renderer::assign(const Statement& statement, const Value& value) {
  const auto assign_to = [&](const Target& target, const Value& part) {
    if (!target.attribute.empty()) return assign_attribute(target, part);
    set(target.name, part);
  };
  if (!statement.unpack) return assign_to(statement.targets.front(), value);
  require_defined(r_, value);
  const std::vector<Value> parts = items_of(r_, value);
  if (parts.size() != statement.targets.size())
    r_.fail_value("{} values cannot be assigned to {} names", parts.size(), statement.targets.size());
  for (size_t i = 0; i < parts.size(); ++i) assign_to(statement.targets[i], parts[i]);
}

void Renderer::assign_attribute(const Target& target, const Value& value) {
  const Value space = look_up(target.name);
  auto* const* found = std::get_if<Namespace*>(&space);
  if (found == nullptr)
    r_.fail_value("{} is {}, and only namespaces have attributes that can be set", target.name,
                  kind_name(space));
  auto& names = (*found)->names;
  r_.spend(names.size() / 8 + 1);
  for (auto& [name, content] : names) {
    if (name != target.attribute) continue;
    content = value;
    return;
  }
  r_.reserve(sizeof(Value) + target.attribute.size());
  names.emplace_back(target.attribute, value);
}

void Renderer::set(std::string_view name, const Value& value) {
  r_.spend(scope_->names.size() / 8 + 1);
  for (auto& [each, content] : scope_->names) {
    if (each != name) continue;
    content = value;
    return;
  }
  r_.reserve(sizeof(std::pair<std::string_view, Value>));
  scope_->names.emplace_back(name, value);
}

Value Renderer::look_up(std::string_view name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    r_.spend(scope->names.size() / 8 + 1);
    for (const auto& [each, value] : scope->names)
      if (each == name) return value;
  }
  if (const auto function = try_function(r_, name)) return *function;
  return Undefined{name};
}

Value Renderer::call_macro(const Macro& macro, const Arguments& arguments) {
  const Deeper deeper(*this);
  const Statement& statement = *macro.statement;
  const auto& parameters = statement.parameters;
  const auto index_of = [&](std::string_view name) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != name) ++i;
    if (i == parameters.size()) r_.fail_value("the macro {} has no parameter {}", statement.text, name);
    return i;
  };
  if (arguments.values.size() > parameters.size())
    r_.fail_value("the macro {} takes {} arguments, not {}", statement.text, parameters.size(),
                  arguments.values.size());
  std::vector<std::optional<Value>> given(arguments.values.begin(), arguments.values.end());
  given.resize(parameters.size());
  for (const auto& [name, value] : arguments.keywords) given[index_of(name)] = value;
  const Inner inner(*this, macro.scope);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value missing = Undefined{parameters[i].name};
    set(parameters[i].name, given[i]                         ? *given[i]
                            : parameters[i].value != nullptr ? evaluate(*parameters[i].value)
                                                             : missing);
  }
  std::string out;
  run(*statement.body, out);
  return r_.text(std::move(out));
}

std::string render(Rendering& rendering, const StatementList& statements,
                   const std::vector<std::pair<std::string, Value>>& variables) {
  Scope context, top;
  for (const auto& [name, value] : variables) context.names.emplace_back(name, value);
  top.parent = &context;
  std::string out;
  Renderer(rendering, top).run(statements, out);
  return out;
}

}  // namespace halftone::jinja
