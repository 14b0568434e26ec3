#include "graph/operators/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace halftone {
namespace {

constexpr int kAny = -1;

constexpr std::array kBuiltins = {
    Builtin{"sym::add", 2, 2, 1},
    Builtin{"sym::sub", 2, 2, 1},
    Builtin{"sym::mul", 2, 2, 1},
    Builtin{"sym::floordiv", 2, 2, 1},
    Builtin{"sym::truediv", 2, 2, 1},
    Builtin{"sym::mod", 2, 2, 1},
    Builtin{"sym::pow", 2, 2, 1},
    Builtin{"sym::neg", 1, 1, 1},
    Builtin{"sym::pos", 1, 1, 1},
    Builtin{"sym::eq", 2, 2, 1},
    Builtin{"sym::ne", 2, 2, 1},
    Builtin{"sym::lt", 2, 2, 1},
    Builtin{"sym::le", 2, 2, 1},
    Builtin{"sym::gt", 2, 2, 1},
    Builtin{"sym::ge", 2, 2, 1},
    Builtin{"sym::and", 2, 2, 1},
    Builtin{"sym::or", 2, 2, 1},
    Builtin{"sym::not", 1, 1, 1},
    Builtin{"sym::lshift", 2, 2, 1},
    Builtin{"sym::rshift", 2, 2, 1},
    Builtin{"sym::max", 2, 2, 1},
    Builtin{"sym::min", 2, 2, 1},
    Builtin{"sym::sum", 1, 1, 1},
    Builtin{"sym::ite", 3, 3, 1},
    Builtin{"sym::int", 1, 1, 1},
    Builtin{"sym::float", 1, 1, 1},
    Builtin{"sym::sqrt", 1, 1, 1},
    Builtin{"sym::log2", 1, 1, 1},
    Builtin{"sym::trunc", 1, 1, 1},
    Builtin{"sym::floor", 1, 1, 1},
    Builtin{"sym::ceil", 1, 1, 1},
    Builtin{"sym::round", 1, 2, 1},
    Builtin{"sym::abs", 1, 1, 1},
    Builtin{"builtin::unpack", 1, 1, kAny},
    Builtin{"builtin::getitem", 2, 2, 1},
    Builtin{"builtin::cond", 4, 4, kAny},
    Builtin{"builtin::while_loop", 4, 4, kAny},
    Builtin{"builtin::map", 3, 3, kAny},
    Builtin{"builtin::scan", 4, 4, kAny},
};

/// By name. Handles are kept for ever: a graph borrows them, and the number of operators is bounded.
using Operators = std::map<std::string, c10::OperatorHandle, std::less<>>;

const Operators::value_type* try_known(std::string_view target) {
  static std::mutex mutex;
  static auto& cache = *new Operators();
  const std::lock_guard lock(mutex);
  if (const auto found = cache.find(target); found != cache.end()) return &*found;
  const size_t dot = target.find('.');
  const std::string name(target.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view{} : target.substr(dot + 1));
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) return nullptr;
  return &*cache.emplace(std::string(target), *handle).first;
}

/// One for each of kBuiltins.
const std::vector<std::string>& builtin_names() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    for (const Builtin& builtin : kBuiltins) all.emplace_back(builtin.name);
    return all;
  }());
  return names;
}

}  // namespace

const c10::OperatorHandle* try_operator(std::string_view target) {
  const Operators::value_type* known = try_known(target);
  return known ? &known->second : nullptr;
}

std::optional<Target> try_target(std::string_view name) {
  if (const Builtin* builtin = try_builtin(name))
    return Target{&builtin_names()[static_cast<size_t>(builtin - kBuiltins.data())], nullptr};
  const Operators::value_type* known = try_known(name);
  return known ? std::optional(Target{&known->first, &known->second}) : std::nullopt;
}

std::span<const Builtin> builtins() {
  return kBuiltins;
}

const Builtin* try_builtin(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace halftone
