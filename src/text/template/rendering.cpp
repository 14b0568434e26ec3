#include "text/template/rendering.h"

namespace halftone::jinja {

namespace {

constexpr size_t kBytesOfObject = 96;  // its own memory and its share of the table that holds it
constexpr size_t kBytesOfItem = sizeof(Value);

template <typename... Kinds>
struct Names : Kinds... {
  using Kinds::operator()...;
};
template <typename... Kinds>
Names(Kinds...) -> Names<Kinds...>;

const char* name_of_list(ListKind kind) {
  switch (kind) {
    case ListKind::kTuple:
      return "a tuple";
    case ListKind::kView:
      return "a view of a mapping";
    case ListKind::kGenerator:
      return "a generator";
    case ListKind::kList:
      break;
  }
  return "a list";
}

}  // namespace

std::string_view kind_name(const Value& value) {
  return std::visit(
      Names{[](const Undefined&) { return "an undefined value"; }, [](const None&) { return "None"; },
            [](bool) { return "a boolean"; }, [](int64_t) { return "an integer"; },
            [](double) { return "a number"; }, [](const std::string*) { return "a text"; },
            [](const List* list) { return name_of_list(list->kind); },
            [](const Dict*) { return "a mapping"; }, [](const Namespace*) { return "a namespace"; },
            [](const Macro*) { return "a macro"; }, [](Function) { return "a function"; },
            [](const Method*) { return "a method"; }, [](const Loop*) { return "the variable loop"; }},
      value);
}

void Rendering::reserve(size_t bytes) {
  if (bytes > bytes_left_)
    fail(ErrorCode::kCorruptFile, "the template takes more than {} bytes of memory", kMaxBytes);
  spend(bytes / 256 + 1);
  bytes_left_ -= bytes;
}

Value Rendering::text(std::string text) {
  reserve(kBytesOfObject + text.size());
  return &texts_.emplace_back(std::move(text));
}

Value Rendering::safe_text(std::string text) {
  const Value value = this->text(std::move(text));
  reserve(kBytesOfObject);
  safe_texts_.insert(try_text(value));
  return value;
}

bool Rendering::is_safe(const Value& value) const {
  return !safe_texts_.empty() && safe_texts_.contains(try_text(value));
}

Value Rendering::list(std::vector<Value> items, ListKind kind) {
  reserve(kBytesOfObject + kBytesOfItem * items.size());
  return &lists_.emplace_back(List{std::move(items), kind});
}

Value Rendering::dict(std::vector<std::pair<Value, Value>> entries) {
  reserve(kBytesOfObject + 2 * kBytesOfItem * entries.size());
  return &dicts_.emplace_back(Dict{std::move(entries)});
}

Namespace* Rendering::make_namespace() {
  reserve(kBytesOfObject);
  return &namespaces_.emplace_back();
}

Value Rendering::macro(const Statement& statement, Scope& scope) {
  reserve(kBytesOfObject);
  for (Scope* each = &scope; each != nullptr && !each->captured; each = each->parent) {
    reserve(sizeof(Scope));
    each->captured = true;
  }
  return &macros_.emplace_back(Macro{&statement, &scope});
}

Value Rendering::method(const Value& self, std::string_view name) {
  reserve(kBytesOfObject);
  return &methods_.emplace_back(Method{self, name});
}

Loop* Rendering::loop() {
  reserve(sizeof(Loop) + 1024);  // a deque is half a kilobyte even when it is empty
  return &loops_.emplace_back();
}

void Rendering::keep(std::unique_ptr<Scope> scope) {
  scopes_.push_back(std::move(scope));
}

}  // namespace halftone::jinja
