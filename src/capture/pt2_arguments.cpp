#include "capture/pt2_arguments.h"

#include <nlohmann/json.hpp>

#include "base/errors.h"

namespace halftone {
namespace {

template <typename Read>
Argument read_list(const JsonCursor& cursor, const Read& read) {
  if (!cursor.raw().is_array()) cursor.fail_here("expected an array");
  Argument::List list;
  list.reserve(cursor.size());
  for (size_t i = 0; i < cursor.size(); ++i) list.push_back(read(cursor.at(i)));
  return list;
}

Argument read_int(const JsonCursor& cursor) {
  return cursor.get_int();
}
Argument read_float(const JsonCursor& cursor) {
  return cursor.get_double();
}
Argument read_bool(const JsonCursor& cursor) {
  return cursor.get_bool();
}
Argument read_string(const JsonCursor& cursor) {
  return cursor.get_string();
}

Argument read_none(const JsonCursor& cursor) {
  if (!cursor.get_bool()) cursor.fail_here("as_none must be true");
  return Argument();
}

}  // namespace

std::string_view why_unsupported_argument(std::string_view tag) {
  if (tag == "as_custom_obj") return "takes a custom object";
  if (tag == "as_operator") return "takes an operator as an operand";
  if (tag == "as_string_to_argument") return "takes a dict";
  return {};
}

Argument ArgumentReader::read(const JsonCursor& cursor) const {
  const auto [tag, value] = read_union(cursor);
  const auto tensor = [&](const JsonCursor& at) { return lookup(at.at("name").get_string(), at); };
  const auto optional_tensor = [&](const JsonCursor& at) {
    const auto [kind, inner] = read_union(at);
    if (kind == "as_none") return read_none(inner);
    if (kind != "as_tensor") refuse_tag(context, at, kind);
    return tensor(inner);
  };
  // SymIntArgument, SymFloatArgument, SymBoolArgument: a name, or a constant between names.
  const auto symbolic = [&](const JsonCursor& at) -> Argument {
    const auto [kind, inner] = read_union(at);
    if (kind == "as_name") return lookup(inner.get_string(), inner);
    if (kind == "as_int") return read_int(inner);
    if (kind == "as_float") return read_float(inner);
    if (kind == "as_bool") return read_bool(inner);
    refuse_tag(context, at, kind);
  };
  if (tag == "as_none") return read_none(value);
  if (tag == "as_tensor") return tensor(value);
  if (tag == "as_tensors") return read_list(value, tensor);
  if (tag == "as_optional_tensor") return optional_tensor(value);
  if (tag == "as_optional_tensors") return read_list(value, optional_tensor);
  if (tag == "as_nested_tensors")
    return read_list(value, [&](const JsonCursor& at) { return read_list(at, tensor); });
  if (tag == "as_int") return read_int(value);
  if (tag == "as_ints") return read_list(value, read_int);
  if (tag == "as_int_lists")
    return read_list(value, [](const JsonCursor& at) { return read_list(at, read_int); });
  if (tag == "as_float") return read_float(value);
  if (tag == "as_floats") return read_list(value, read_float);
  if (tag == "as_float_lists")
    return read_list(value, [](const JsonCursor& at) { return read_list(at, read_float); });
  if (tag == "as_bool") return read_bool(value);
  if (tag == "as_bools") return read_list(value, read_bool);
  if (tag == "as_string") return read_string(value);
  if (tag == "as_strings") return read_list(value, read_string);
  if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") return symbolic(value);
  if (tag == "as_sym_ints" || tag == "as_sym_floats" || tag == "as_sym_bools")
    return read_list(value, symbolic);
  if (tag == "as_scalar_type") return read_scalar_type(value);
  if (tag == "as_memory_format") return read_memory_format(value);
  if (tag == "as_layout") return read_layout(value);
  if (tag == "as_device") return read_device(value);
  if (tag == "as_complex")
    return c10::complex<double>(value.at("real").get_double(), value.at("imag").get_double());
  if (tag == "as_graph") return subgraph(value.at("graph"));
  if (const auto why = why_unsupported_argument(tag); !why.empty()) {
    fail(ErrorCode::kUnsupported, "{}: {}", cursor.path(), why);
  }
  refuse_tag(context, cursor, tag);
}

Argument read_constant_argument(const Pt2Context& context, const JsonCursor& cursor) {
  const auto no_value = [](const std::string& name, const JsonCursor& place) -> Argument {
    place.fail_here(fmt::format("value \"{}\" where a constant is needed", name));
  };
  const auto no_graph = [](const JsonCursor& place) -> std::shared_ptr<Graph> {
    place.fail_here("a graph where a constant is needed");
  };
  return ArgumentReader{context, no_value, no_graph}.read(cursor);
}

}  // namespace halftone
