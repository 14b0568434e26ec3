// A minified case as a folder: graph.txt, inputs.safetensors, README.txt.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/graph_case.h"
#include "base/errors.h"
#include "graph/checks/allowed_operators.h"
#include "halftone/cli/text_file.h"
#include "halftone/graph/tensor_file.h"

namespace halftone {
namespace {

namespace fs = std::filesystem;
using Metadata = std::map<std::string, std::string>;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(ErrorCode::kIo, "{}: cannot be written", path.string());
}

std::string readme(const MinifiedCase& minified, const std::string& backend) {
  return fmt::format(
      "The smallest graph on which Halftone's backend {0} was seen to fail, made from {1}\n"
      "({2} nodes before, {3} now).\n\n"
      "{4}: {5}\n\n"
      "graph.txt            the graph in Halftone's text form\n"
      "inputs.safetensors   its inputs, parameters and buffers, by the names of its values\n\n"
      "Run it again from here, which fails as long as the backend does:\n"
      "  halftone minify --check . --backend {0}\n",
      backend, minified.smallest.module->name.empty() ? "a graph" : minified.smallest.module->name,
      minified.nodes_before, minified.nodes_after, to_string(minified.failure.kind),
      minified.failure.message);
}

/// The file holds rows one after the other: other strides are written down, for failures that need them.
void note_strides(const std::string& name, const at::Tensor& tensor, Metadata& metadata) {
  if (!tensor.is_contiguous())
    metadata["strides." + name] = fmt::format("{}", fmt::join(tensor.strides(), ","));
}

void collect(const Value& value, const c10::IValue& held, TensorMap& tensors, Metadata& metadata) {
  if (held.isTensor() && held.toTensor().defined()) {
    tensors[value.name()] = held.toTensor().detach();
    note_strides(value.name(), held.toTensor(), metadata);
  } else if (held.isInt() || held.isDouble() || held.isBool()) {
    const auto type = held.isInt()      ? c10::ScalarType::Long
                      : held.isDouble() ? c10::ScalarType::Double
                                        : c10::ScalarType::Bool;
    tensors[value.name()] = at::scalar_tensor(held.toScalar(), type);
  } else if (held.isString()) {
    metadata["string." + value.name()] = held.toStringRef();
  } else if (!held.isNone()) {
    fail(ErrorCode::kUnsupported, "input %{} is a {}, which cannot be saved", value.name(), held.tagKind());
  }
}

std::vector<int64_t> numbers_of(const std::string& text, char separator) {
  std::vector<int64_t> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, separator);) {
    int64_t number = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (code != std::errc() || end != word.data() + word.size())
      fail(ErrorCode::kCorruptFile, "\"{}\" is no list of numbers", text);
    numbers.push_back(number);
  }
  return numbers;
}

/// Reads one folder.
class Loader {
 public:
  explicit Loader(const std::string& folder)
      : graph_path_((fs::path(folder) / "graph.txt").string()),
        tensors_path_((fs::path(folder) / "inputs.safetensors").string()),
        file_(load_tensors(tensors_path_, /*map=*/false)) {}

  SavedCase load() {
    std::unique_ptr<Graph> graph = parse();
    TensorMap tensors;
    std::vector<c10::IValue> inputs;
    for (const GraphInput& input : graph->inputs()) {
      if (input.kind == InputKind::kUser) {
        inputs.push_back(user_value(input));
      } else {
        tensors.emplace(input.target, tensor(*input.value));
      }
    }
    GraphModule form(std::make_unique<Graph>(), {}, {});
    form.name = metadata("model");
    form.ranges = ranges();
    return {{form.with_flat_graph(std::move(graph), std::move(tensors)), std::move(inputs)},
            {kind(), metadata("message")},
            metadata("backend")};
  }

 private:
  std::unique_ptr<Graph> parse() const {
    try {
      auto graph = parse_graph(read_text_file(graph_path_));
      lint_or_throw(*graph, "graph");
      require_allowed(*graph, "graph");
      fill_empty_tensors(*graph);
      return graph;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kNotFound) throw;
      throw error.with_context(graph_path_);
    }
  }

  std::string metadata(const std::string& key) const {
    const auto found = file_.metadata.find(key);
    return found == file_.metadata.end() ? "" : found->second;
  }

  FailureKind kind() const {
    const std::string text = metadata("failure");
    for (const FailureKind kind : {FailureKind::kCompileError, FailureKind::kRunError}) {
      if (text == to_string(kind)) return kind;
    }
    return FailureKind::kAccuracy;
  }

  at::Tensor tensor(const Value& value) const {
    const auto found = file_.tensors.find(value.name());
    if (found == file_.tensors.end())
      fail(ErrorCode::kCorruptFile, "{}: has no tensor \"{}\"", tensors_path_, value.name());
    at::Tensor tensor = found->second;
    if (const std::string strides = metadata("strides." + value.name()); !strides.empty())
      tensor = with_strides(tensor, strides);
    if (value.meta() && value.meta()->requires_grad) tensor.set_requires_grad(true);
    return tensor;
  }

  at::Tensor with_strides(const at::Tensor& tensor, const std::string& text) const {
    const std::vector<int64_t> strides = numbers_of(text, ',');
    int64_t last = 0;
    const bool fits = std::cmp_equal(strides.size(), tensor.dim());
    for (size_t d = 0; fits && d < strides.size(); ++d) {
      // More than sixteen times as far as a dense tensor reaches is not a layout that a graph makes.
      const int64_t limit = 16 * std::max<int64_t>(tensor.numel(), 1);
      if (strides[d] < 0 || strides[d] > limit)
        fail(ErrorCode::kCorruptFile, "{}: strides {} are out of range", tensors_path_, text);
      last += strides[d] * (tensor.size(static_cast<int64_t>(d)) - 1);
      if (last > limit) fail(ErrorCode::kCorruptFile, "{}: strides {} are out of range", tensors_path_, text);
    }
    if (!fits) fail(ErrorCode::kCorruptFile, "{}: strides {} do not fit", tensors_path_, text);
    return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
  }

  c10::IValue user_value(const GraphInput& input) const {
    const Value& value = *input.value;
    switch (value.type()) {
      case ValueType::kTensor:
        return tensor(value);
      case ValueType::kInt:
        return number(value).toLong();
      case ValueType::kFloat:
        return number(value).toDouble();
      case ValueType::kBool:
        return number(value).toBool();
      case ValueType::kString:
        return metadata("string." + value.name());
      case ValueType::kList:
      case ValueType::kNone:
        break;
    }
    return {};
  }

  c10::Scalar number(const Value& value) const {
    const at::Tensor held = tensor(value);
    if (held.numel() != 1)
      fail(ErrorCode::kCorruptFile, "{}: \"{}\" is no number", tensors_path_, value.name());
    return held.item();
  }

  std::map<std::string, SymbolRange> ranges() const {
    std::map<std::string, SymbolRange> ranges;
    constexpr std::string_view kPrefix = "range.";
    for (const auto& [key, text] : file_.metadata) {
      if (!key.starts_with(kPrefix)) continue;
      const std::vector<int64_t> ends = numbers_of(text, ',');
      if (ends.size() != 2) fail(ErrorCode::kCorruptFile, "{}: {} is no range", tensors_path_, key);
      SymbolRange& range = ranges[key.substr(kPrefix.size())];
      range.min = ends[0];
      range.max = ends[1];
    }
    return ranges;
  }

  std::string graph_path_;
  std::string tensors_path_;
  TensorFile file_;
};

}  // namespace

void save_case(const std::string& folder, const MinifiedCase& minified, const std::string& backend) {
  const GraphModule& module = *minified.smallest.module;
  require_allowed(module.graph(), "this case cannot be saved, it would not load again");
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) fail(ErrorCode::kIo, "{}: cannot be made: {}", folder, failed.message());
  TensorMap tensors;
  Metadata metadata = {{"backend", backend},
                       {"failure", std::string(to_string(minified.failure.kind))},
                       {"message", minified.failure.message},
                       {"model", module.name}};
  size_t user = 0;
  for (const GraphInput& input : module.graph().inputs()) {
    const c10::IValue held = input.kind == InputKind::kUser ? minified.smallest.inputs.at(user++)
                                                            : c10::IValue(module.tensor(input.target));
    collect(*input.value, held, tensors, metadata);
  }
  for (const auto& [symbol, range] : module.ranges)
    metadata["range." + symbol] = fmt::format("{},{}", range.min, range.max);
  const fs::path place(folder);
  write_text(place / "graph.txt", print_graph(module.graph()));
  save_tensors((place / "inputs.safetensors").string(), tensors, metadata);
  write_text(place / "README.txt", readme(minified, backend));
}

SavedCase load_case(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    fail(ErrorCode::kNotFound, "{}: {}", folder,
         fs::exists(folder, ignored) ? "is not a folder that minify wrote" : "no such folder");
  return Loader(folder).load();
}

}  // namespace halftone
