// parse_graph(): graphs from their text form.
#include <ATen/core/dispatch/Dispatcher.h>

#include "base/errors.h"
#include "graph/checks/schema_check.h"
#include "graph/ir/text_names.h"
#include "graph/operators/operators.h"
#include "graph/text/text_scanner.h"
#include "halftone/graph/graph.h"

namespace halftone {
namespace {

constexpr int kMaxNesting = 64;      // of lists and subgraphs together
constexpr size_t kMaxRank = 64;      // torch's iterators stop there too; bounds the work of symbolic strides
constexpr size_t kMaxReported = 50;  // unknown operators in one message

struct UnknownOperator {
  std::string target;
  size_t line = 0;
};

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) (all += all.empty() ? "" : "; ") += part;
  return all;
}

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : scanner_(text) {}

  std::unique_ptr<Graph> parse() {
    if (!scanner_.accept_word("graph")) scanner_.fail_expected("\"graph\"");
    std::unique_ptr<Graph> graph = parse_body();
    if (!scanner_.at_end()) scanner_.fail_expected("the end of the text");
    fail_on_unknown_operators();
    return graph;
  }

 private:
  class Nesting {
   public:
    explicit Nesting(GraphParser& parser) : parser_(parser) {
      if (++parser.nesting_ > kMaxNesting) {
        parser.scanner_.fail_at(parser.scanner_.position(),
                                fmt::format("nested deeper than {}", kMaxNesting));
      }
    }
    ~Nesting() { --parser_.nesting_; }

   private:
    GraphParser& parser_;
  };

  void fail_on_unknown_operators() const {
    if (unknown_.empty()) return;
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(unknown_.size(), kMaxReported); ++i) {
      parts.push_back(fmt::format("line {}: {}", unknown_[i].line, unknown_[i].target));
    }
    if (unknown_.size() > kMaxReported)
      parts.push_back(fmt::format("and {} more", unknown_.size() - kMaxReported));
    fail(ErrorCode::kUnsupported, "the graph has unknown operators: {}", join(parts));
  }

  // After the word "graph".
  std::unique_ptr<Graph> parse_body() {
    const Nesting nesting(*this);
    auto graph = std::make_unique<Graph>();
    scanner_.expect('(');
    if (!scanner_.accept(')')) {
      do {
        parse_input(*graph);
      } while (scanner_.accept(','));
      scanner_.expect(')');
    }
    scanner_.expect('{');
    while (!scanner_.accept_word("return")) {
      if (scanner_.peek() == '}' || scanner_.at_end()) scanner_.fail_expected("a node or \"return\"");
      parse_node(*graph);
    }
    parse_outputs(*graph);
    scanner_.expect('}');
    return graph;
  }

  OutputSpec parse_name(const Graph& graph) {
    const size_t start = scanner_.position();
    OutputSpec spec{scanner_.take_value_name()};
    if (graph.try_value(spec.name) != nullptr)
      scanner_.fail_at(start, fmt::format("%{} is defined twice", spec.name));
    scanner_.expect(':');
    return spec;
  }

  void parse_input(Graph& graph) {
    OutputSpec spec = parse_name(graph);
    const size_t start = scanner_.position();
    const std::string_view word = scanner_.take_word("the kind of an input");
    std::optional<InputKind> kind;
    for (const InputKind candidate : {InputKind::kUser, InputKind::kParameter, InputKind::kBuffer,
                                      InputKind::kNonPersistentBuffer, InputKind::kConstant}) {
      if (to_string(candidate) == word) kind = candidate;
    }
    if (!kind) {
      scanner_.fail_at(start, "an input is user, parameter, buffer, non_persistent_buffer or constant");
    }
    std::string target;
    if (scanner_.peek() == '"') target = scanner_.take_string();
    parse_type(spec);
    graph.add_input(std::move(spec), *kind, std::move(target));
    if (scanner_.accept('=')) graph.set_input_fixed(graph.inputs().size() - 1, parse_fixed(graph));
  }

  /// The constant that a call must give for an input.
  Argument parse_fixed(const Graph& graph) {
    const size_t start = scanner_.position();
    Argument constant = parse_argument(graph);
    if (constant.value() || constant.list() || constant.get_if<std::shared_ptr<Graph>>()) {
      scanner_.fail_at(start, "an input can be fixed only to a scalar constant");
    }
    return constant;
  }

  void parse_type(OutputSpec& spec) {
    const size_t start = scanner_.position();
    const std::string_view word = scanner_.take_word("a type");
    if (scanner_.peek() == '[') {
      const auto dtype = try_dtype(word);
      if (!dtype) scanner_.fail_at(start, fmt::format("unknown dtype {}", word.substr(0, 40)));
      spec.meta.emplace();
      spec.meta->dtype = *dtype;
      parse_meta(*spec.meta, start);
      return;
    }
    for (const ValueType type : {ValueType::kTensor, ValueType::kInt, ValueType::kFloat, ValueType::kBool,
                                 ValueType::kString, ValueType::kList, ValueType::kNone}) {
      if (to_string(type) != word) continue;
      spec.type = type;
      const bool number = type == ValueType::kInt || type == ValueType::kFloat || type == ValueType::kBool;
      if (number && scanner_.accept('(')) {
        spec.expression = scanner_.take_expression();
        scanner_.expect(')');
      }
      return;
    }
    scanner_.fail_at(start, fmt::format("unknown type {}", word.substr(0, 40)));
  }

  std::vector<SymExpr> parse_sizes() {
    std::vector<SymExpr> sizes;
    do {
      if (sizes.size() == kMaxRank) {
        scanner_.fail_at(scanner_.position(), fmt::format("a tensor with more than {} dimensions", kMaxRank));
      }
      sizes.push_back(scanner_.take_expression());
    } while (scanner_.accept(','));
    return sizes;
  }

  // After the dtype.
  void parse_meta(TensorMeta& meta, size_t start) {
    scanner_.expect('[');
    if (scanner_.peek() != ']') {
      meta.sizes = parse_sizes();
      if (!scanner_.accept(';')) {
        const auto strides = contiguous_strides(meta.sizes);
        if (!strides) scanner_.fail_at(start, "the sizes are too large");
        meta.strides = *strides;
      } else if (!scanner_.accept('?')) {
        meta.strides = parse_sizes();
        if (meta.strides.size() != meta.sizes.size()) {
          scanner_.fail_at(start,
                           fmt::format("{} sizes but {} strides", meta.sizes.size(), meta.strides.size()));
        }
      }
    }
    scanner_.expect(']');
    if (scanner_.peek_word().starts_with("device:")) {
      const size_t place = scanner_.position();
      meta.device = parse_device(scanner_.take_word("a device").substr(7), place);
    }
    meta.requires_grad = scanner_.accept_word("grad");
  }

  c10::Device parse_device(std::string_view name, size_t start) {
    try {
      const c10::Device device{std::string(name)};
      if (device.str() == name) return device;  // torch cuts numbers that are too large for its index
    } catch (const std::exception&) {
      // torch has thrown different types here; all mean the same
    }
    scanner_.fail_at(start, fmt::format("unknown device {}", name.substr(0, 40)));
  }

  void parse_node(Graph& graph) {
    const size_t start = scanner_.position();
    std::vector<OutputSpec> outputs;
    if (scanner_.peek() == '%') {
      do {
        outputs.push_back(parse_name(graph));
        parse_type(outputs.back());
      } while (scanner_.accept(','));
      scanner_.expect('=');
    }
    const size_t place = scanner_.position();
    const std::string target(scanner_.take_word("an operator"));
    const bool builtin = try_builtin(target) != nullptr;
    // "aten::add." would find aten::add, and then be another name for it.
    const c10::OperatorHandle* op = builtin || target.ends_with('.') ? nullptr : try_operator(target);
    std::vector<NamedArgument> inputs = parse_operands(graph, op);
    Source source = parse_source();
    if (op == nullptr && !builtin) {
      unknown_.push_back({target, scanner_.line_of(place)});
      // The graph is given up at the end; until then its values must be known, so that the other errors are
      // found.
      for (OutputSpec& output : outputs) graph.add_input(std::move(output));
      return;
    }
    const auto problems = arity_problems({target, op, inputs, outputs.size()});
    if (!problems.empty()) scanner_.fail_at(place, fmt::format("{} {}", target, join(problems)));
    std::vector<std::string> names;
    for (const OutputSpec& output : outputs) names.push_back(output.name);
    const Node* node = graph.append(target, std::move(inputs), std::move(outputs), std::move(source));
    for (size_t i = 0; i < names.size(); ++i) {
      if (node->output(i)->name() != names[i])
        scanner_.fail_at(start, fmt::format("%{} is defined twice", names[i]));
    }
  }

  std::vector<NamedArgument> parse_operands(const Graph& graph, const c10::OperatorHandle* op) {
    std::vector<NamedArgument> inputs;
    bool named = false;
    scanner_.expect('(');
    if (scanner_.accept(')')) return inputs;
    do {
      const size_t start = scanner_.position();
      std::string name(scanner_.try_take_label());
      named = named || !name.empty();
      if (name.empty() && op != nullptr) {
        if (named) scanner_.fail_at(start, "a positional operand after a named one");
        const auto& arguments = op->schema().arguments();
        const bool known = inputs.size() < arguments.size();
        if (!known && !op->schema().is_vararg()) {
          scanner_.fail_at(
              start, fmt::format("too many operands: {} takes {}", op->schema().name(), arguments.size()));
        }
        if (known && arguments[inputs.size()].kwarg_only()) {
          scanner_.fail_at(start,
                           fmt::format("operand \"{}\" must be named", arguments[inputs.size()].name()));
        }
        if (known) name = arguments[inputs.size()].name();
      }
      inputs.push_back({std::move(name), parse_argument(graph)});
    } while (scanner_.accept(','));
    scanner_.expect(')');
    return inputs;
  }

  Source parse_source() {
    Source source;
    if (!scanner_.accept('@')) return source;
    source.layer = scanner_.take_string();
    if (scanner_.peek() == '"') source.module_type = scanner_.take_string();
    return source;
  }

  Argument parse_argument(const Graph& graph) {
    const size_t start = scanner_.position();
    const char next = scanner_.peek();
    if (next == '%') {
      const std::string name = scanner_.take_value_name();
      Value* value = graph.try_value(name);
      if (value == nullptr) scanner_.fail_at(start, fmt::format("%{} is not defined", name));
      return value;
    }
    if (next == '"') return scanner_.take_string();
    if (next == '[') return parse_list(graph);
    if (next == '-' || (next >= '0' && next <= '9')) {
      const auto number = scanner_.take_number();
      if (const auto* whole = std::get_if<int64_t>(&number)) return *whole;
      return std::get<double>(number);
    }
    return parse_word_argument(start);
  }

  Argument parse_list(const Graph& graph) {
    const Nesting nesting(*this);
    Argument::List list;
    scanner_.expect('[');
    if (scanner_.accept(']')) return list;
    do {
      list.push_back(parse_argument(graph));
    } while (scanner_.accept(','));
    scanner_.expect(']');
    return list;
  }

  double parse_real() {
    if (scanner_.accept_word("inf")) return std::numeric_limits<double>::infinity();
    if (scanner_.accept_word("nan")) return std::numeric_limits<double>::quiet_NaN();
    const auto number = scanner_.take_number();
    return std::visit([](auto value) { return static_cast<double>(value); }, number);
  }

  Argument parse_word_argument(size_t start) {
    const std::string_view word = scanner_.peek_word();
    if (word == "inf" || word == "nan") return parse_real();
    scanner_.take_word("an operand");
    if (word == "None") return Argument();
    if (word == "true") return true;
    if (word == "false") return false;
    if (word == "graph") return std::shared_ptr<Graph>(parse_body());
    if (word == "complex") {
      scanner_.expect('(');
      const double real = parse_real();
      scanner_.expect(',');
      const double imaginary = parse_real();
      scanner_.expect(')');
      return c10::complex<double>(real, imaginary);
    }
    const size_t colon = word.find(':');
    const std::string_view kind = word.substr(0, colon);
    const std::string_view name =
        colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1);
    if (kind == "device" && !name.empty()) return parse_device(name, start);
    if (kind == "dtype") {
      if (const auto dtype = try_dtype(name)) return *dtype;
    } else if (kind == "layout") {
      if (const auto layout = try_layout(name)) return *layout;
    } else if (kind == "format") {
      if (const auto format = try_memory_format(name)) return *format;
    }
    scanner_.fail_at(start, fmt::format("unknown operand {}", word.substr(0, 40)));
  }

  void parse_outputs(Graph& graph) {
    std::vector<Argument> values;
    std::vector<GraphOutput> outputs;
    while (scanner_.peek() != '}') {
      if (!values.empty()) scanner_.expect(',');
      GraphOutput output;
      for (const OutputKind kind :
           {OutputKind::kUser, OutputKind::kBufferMutation, OutputKind::kInputMutation}) {
        if (!scanner_.accept_word(to_string(kind))) continue;
        output.kind = kind;
        output.target = scanner_.take_string();
        break;
      }
      values.push_back(parse_argument(graph));
      outputs.push_back(std::move(output));
    }
    graph.set_outputs(std::move(values), std::move(outputs));
  }

  TextScanner scanner_;
  std::vector<UnknownOperator> unknown_;
  int nesting_ = 0;
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text) {
  return GraphParser(text).parse();
}

}  // namespace halftone
