// What Python's operators do with values, as far as templates use it.
#pragma once

#include <string>
#include <vector>

#include "text/template/rendering.h"

namespace halftone::jinja {

/// Values within values are followed so far.
inline constexpr int kMaxValueDepth = 100;

bool is_true(const Value& value);
/// a == b.
bool is_equal(Rendering& rendering, const Value& a, const Value& b, int depth = 0);
/// Negative, zero or positive; for numbers and for texts.
int order_of(Rendering& rendering, const Value& a, const Value& b);
/// item in container.
bool contains(Rendering& rendering, const Value& container, const Value& item);

/// `op`: one of + - * / // % **.
Value calculate(Rendering& rendering, std::string_view op, const Value& a, const Value& b);
Value negative(Rendering& rendering, const Value& value);

/// The number that True, an integer or a float is.
bool is_number(const Value& value);
double to_double(const Value& value);
/// Of an argument; fails with `what` in the message.
int64_t to_integer(Rendering& rendering, const Value& value, std::string_view what);

/// value.name: a method of the value first, then its item of that name.
Value attribute_of(Rendering& rendering, const Value& value, std::string_view name);
/// value[key]: the other way round. Undefined if there is none.
Value item_of(Rendering& rendering, const Value& value, const Value& key);
/// value[begin:end:step]; None stands for what is not given.
Value slice_of(Rendering& rendering, const Value& value, const Value& begin, const Value& end,
               const Value& step);
const Value* try_entry(Rendering& rendering, const Dict& dict, const Value& key);

/// What {% for %} goes through: items, keys, characters.
std::vector<Value> items_of(Rendering& rendering, const Value& value);

/// Fails for what Python cannot look up in a mapping: lists and mappings.
void require_key(Rendering& rendering, const Value& value);

/// Fails with the name of what is undefined, as most uses do.
void require_defined(Rendering& rendering, const Value& value);

}  // namespace halftone::jinja
