// One rendering of a template: its memory, what it may cost, and errors that name the line.
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "halftone/base/error.h"
#include "text/template/value.h"

namespace halftone::jinja {

// Templates come with models from anywhere. A published one takes some hundred steps a message.
inline constexpr size_t kMaxSteps = 3'000'000;
inline constexpr size_t kMaxBytes = size_t{128} << 20;  ///< of all values together
inline constexpr size_t kMaxOutput = size_t{32} << 20;  ///< of the text that comes out
inline constexpr int kMaxNesting = 400;                 ///< of calls of the renderer in each other

class Rendering {
 public:
  /// `name` stands first in errors and must outlive the rendering.
  Rendering(std::string_view name, std::time_t now) : name_(name), now_(now) {}
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;

  int line = 1;  ///< of the template, where the rendering is

  template <typename... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(
        code, fmt::format("{}: line {}: {}", name_, line, fmt::format(format, std::forward<Args>(args)...)));
  }
  /// What the template does with these messages and variables is an error in Python too.
  template <typename... Args>
  [[noreturn]] void fail_value(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
  }
  /// "… is not supported": `what` is a construct with its name.
  [[noreturn]] void fail_unsupported(std::string_view what) const {
    fail(ErrorCode::kUnsupported, "{} is not supported", what);
  }

  /// Counts work: a step is about what a small node of the syntax costs.
  void spend(size_t steps) {
    if (steps > steps_left_)
      fail(ErrorCode::kCorruptFile, "the template takes more than {} steps", kMaxSteps);
    steps_left_ -= steps;
  }
  /// The same for work on so many bytes or items.
  void spend_on(size_t bytes) { spend(bytes / 64 + 1); }

  Value text(std::string text);
  /// A text that `safe` has marked: + escapes what is added to it for HTML, though nothing else here does.
  Value safe_text(std::string text);
  bool is_safe(const Value& value) const;
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  Value dict(std::vector<std::pair<Value, Value>> entries);
  Namespace* make_namespace();
  Value macro(const Statement& statement, Scope& scope);
  Value method(const Value& self, std::string_view name);
  Loop* loop();
  /// Keeps a scope that a macro may still need. Its memory was counted by macro() and when its names were set.
  void keep(std::unique_ptr<Scope> scope);
  /// Before values of so many bytes are made.
  void reserve(size_t bytes);

  std::time_t now() const { return now_; }

 private:
  std::string_view name_;
  std::time_t now_;
  size_t steps_left_ = kMaxSteps;
  size_t bytes_left_ = kMaxBytes;
  std::deque<std::string> texts_;
  std::set<const std::string*> safe_texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Macro> macros_;
  std::deque<Method> methods_;
  std::deque<Loop> loops_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

}  // namespace halftone::jinja
