// Filters, tests, methods and functions of templates, by their names.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/rendering.h"

namespace halftone::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string_view, Value>> keywords;
};

/// Each argument in the place of its parameter; nothing where it was not given. Fails where there are too many, or one has an
/// unknown name. `what`: "the filter join".
std::vector<std::optional<Value>> bind_arguments(Rendering& rendering, std::string_view what,
                                                 const Arguments& arguments,
                                                 std::initializer_list<std::string_view> parameters);
/// A text argument; fails with `what` for other values.
const std::string& to_text(Rendering& rendering, const Value& value, std::string_view what);

/// kUnsupported if the name is not known, here as in the functions below.
Value apply_filter(Rendering& rendering, std::string_view name, const Value& value,
                   const Arguments& arguments);
bool apply_test(Rendering& rendering, std::string_view name, const Value& value, const Arguments& arguments);

/// Whether Python has a method of that name for the value. kUnsupported if it has, but this version does not.
bool has_method(Rendering& rendering, const Value& value, std::string_view name);
Value call_method(Rendering& rendering, const Method& method, const Arguments& arguments);

/// A function that every template has; nothing for other names.
std::optional<Value> try_function(Rendering& rendering, std::string_view name);
Value call_function(Rendering& rendering, Function function, const Arguments& arguments);

/// loop.name; the items of the loop that this needs are taken now. render.cpp has it: a loop may have a condition.
Value loop_attribute(Rendering& rendering, Loop& loop, std::string_view name);

}  // namespace halftone::jinja
