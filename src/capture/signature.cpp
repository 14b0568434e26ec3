#include "capture/signature.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "capture/sympy.h"

namespace halftone {
namespace {

ValueType type_of_constant(const Argument& constant, const JsonCursor& place) {
  if (constant.is_none()) return ValueType::kNone;
  if (constant.get_if<int64_t>()) return ValueType::kInt;
  if (constant.get_if<double>()) return ValueType::kFloat;
  if (constant.get_if<bool>()) return ValueType::kBool;
  if (constant.get_if<std::string>()) return ValueType::kString;
  place.fail_here("a constant input must be None, a number, a boolean or a string");
}

class InputSpecs {
 public:
  InputSpecs(const Pt2Context& context, GraphReader& reader, Graph& graph)
      : context_(context), reader_(reader), graph_(graph) {}

  void read(const JsonCursor& spec, size_t index) {
    const auto [kind, value] = read_union(spec);
    if (kind == "user_input") {
      user_input(value, index);
    } else if (kind == "constant_input") {
      constant_input(value, index);
    } else if (kind == "parameter") {
      tensor(value, index, InputKind::kParameter, "parameter_name");
    } else if (kind == "buffer") {
      const bool persistent = value.at("persistent").get_bool();
      tensor(value, index, persistent ? InputKind::kBuffer : InputKind::kNonPersistentBuffer, "buffer_name");
    } else if (kind == "tensor_constant") {
      tensor(value, index, InputKind::kConstant, "tensor_constant_name");
    } else if (kind == "custom_obj") {
      fail(ErrorCode::kUnsupported, "{}: the model holds the custom object \"{}\"", spec.path(),
           value.at("custom_obj_name").get_string());
    } else if (kind == "token") {
      fail(ErrorCode::kUnsupported, "{}: the model takes the effect token \"{}\"", spec.path(),
           value.at("arg").at("name").get_string());
    } else {
      refuse_tag(context_, spec, kind);
    }
  }

 private:
  void check_name(const std::string& name, size_t index, const JsonCursor& place) const {
    const std::string found = reader_.input_name(index);
    if (name != found) {
      place.fail_here(
          fmt::format("the signature calls input {} \"{}\", the graph calls it \"{}\"", index, name, found));
    }
  }

  void tensor(const JsonCursor& value, size_t index, InputKind kind, const char* target_key) {
    const std::string target = value.at(target_key).get_string();
    if (target.empty()) value.at(target_key).fail_here("empty name");
    check_name(value.at("arg").at("name").get_string(), index, value);
    if (reader_.add_input(index, kind, target)->type() != ValueType::kTensor) value.fail_here("not a tensor");
  }

  void user_input(const JsonCursor& value, size_t index) {
    const JsonCursor arg = value.at("arg");
    const auto [tag, inner] = read_union(arg);
    std::string name;
    if (tag == "as_tensor") {
      name = inner.at("name").get_string();
    } else if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") {
      name = inner.at("as_name").get_string();
    } else if (tag == "as_custom_obj") {
      fail(ErrorCode::kUnsupported, "{}: a custom object as input", arg.path());
    } else {
      refuse_tag(context_, arg, tag);
    }
    check_name(name, index, value);
    reader_.add_input(index, InputKind::kUser, name);
  }

  void constant_input(const JsonCursor& value, size_t index) {
    check_name("", index, value);
    const std::string name = value.at("name").get_string();
    if (!is_python_name(name)) value.at("name").fail_here(fmt::format("\"{}\" is no name of an input", name));
    Argument constant = read_constant_argument(context_, value.at("value"));
    OutputSpec spec{.name = name, .type = type_of_constant(constant, value)};
    Value* input = graph_.add_input(std::move(spec), InputKind::kUser, name);
    graph_.set_input_fixed(input->index(), std::move(constant));
    reader_.define(name, input, value);
  }

  const Pt2Context& context_;
  GraphReader& reader_;
  Graph& graph_;
};

class OutputSpecs {
 public:
  OutputSpecs(const Pt2Context& context, const GraphReader& reader, Graph& graph)
      : context_(context), reader_(reader), graph_(graph) {}

  GraphOutput read(const JsonCursor& spec, const Argument& output) {
    const auto [kind, value] = read_union(spec);
    for (const std::string_view refused :
         {"loss_output", "gradient_to_parameter", "gradient_to_user_input", "token"}) {
      if (kind == refused)
        fail(ErrorCode::kUnsupported, "{}: outputs of kind {} are not supported", spec.path(), kind);
    }
    if (kind == "user_output") {
      const auto [tag, inner] = read_union(value.at("arg"));
      if (tag == "as_custom_obj") fail(ErrorCode::kUnsupported, "{}: a custom object as output", spec.path());
      if (tag == "as_tensor") check_name(inner.at("name"), output);
      return {OutputKind::kUser, ""};
    }
    if (kind != "buffer_mutation" && kind != "parameter_mutation" && kind != "user_input_mutation") {
      refuse_tag(context_, spec, kind);
    }
    check_name(value.at("arg").at("name"), output);
    if (!output.value()) spec.fail_here("a constant cannot be the new state");
    const bool user = kind == "user_input_mutation";
    const char* key = user ? "user_input_name" : kind == "buffer_mutation" ? "buffer_name" : "parameter_name";
    std::string target = value.at(key).get_string();
    const size_t input = find_input(target, user, value.at(key));
    // A parameter that the model itself writes is state, as a buffer is.
    if (kind == "parameter_mutation") graph_.set_input_target(input, InputKind::kBuffer, target);
    if (!mutated_.insert({user, target}).second)
      spec.fail_here(fmt::format("\"{}\" is mutated twice", target));
    return {user ? OutputKind::kInputMutation : OutputKind::kBufferMutation, std::move(target)};
  }

 private:
  /// The exporter writes one getitem for duplicates into the graph but may leave the other's name in the
  /// signature.
  void check_name(const JsonCursor& place, const Argument& output) const {
    const std::string name = place.get_string();
    const Argument* known = reader_.try_lookup(name);
    if (known ? !(*known == output) : !name.starts_with("getitem")) {
      place.fail_here(fmt::format("the signature's output \"{}\" is not the graph's", name));
    }
  }

  size_t find_input(const std::string& target, bool user, const JsonCursor& place) const {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const GraphInput& input = graph_.inputs()[i];
      if (input.target == target && (input.kind == InputKind::kUser) == user &&
          input.kind != InputKind::kConstant)
        return i;
    }
    place.fail_here(fmt::format("no {} is called \"{}\"", user ? "input" : "parameter or buffer", target));
  }

  const Pt2Context& context_;
  const GraphReader& reader_;
  Graph& graph_;
  std::set<std::pair<bool, std::string>> mutated_;
};

}  // namespace

void read_input_specs(const Pt2Context& context, const JsonCursor& signature, GraphReader& reader,
                      Graph& graph) {
  const JsonCursor specs = signature.at("input_specs");
  if (!specs.raw().is_array() || specs.size() != reader.input_count()) {
    specs.fail_here(fmt::format("{} specs for {} inputs of the graph", specs.size(), reader.input_count()));
  }
  InputSpecs inputs(context, reader, graph);
  for (size_t i = 0; i < specs.size(); ++i) inputs.read(specs.at(i), i);
}

void read_output_specs(const Pt2Context& context, const JsonCursor& signature, const GraphReader& reader,
                       Graph& graph) {
  const JsonCursor specs = signature.at("output_specs");
  std::vector<Argument> values = reader.read_outputs();
  if (!specs.raw().is_array() || specs.size() != values.size()) {
    specs.fail_here(fmt::format("{} specs for {} outputs of the graph", specs.size(), values.size()));
  }
  OutputSpecs reader_of_specs(context, reader, graph);
  std::vector<GraphOutput> outputs;
  for (size_t i = 0; i < values.size(); ++i) outputs.push_back(reader_of_specs.read(specs.at(i), values[i]));
  graph.set_outputs(std::move(values), std::move(outputs));
}

}  // namespace halftone
