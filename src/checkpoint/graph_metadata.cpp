#include "checkpoint/graph_metadata.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"
#include "checkpoint/records/call_json.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/dtypes.h"
#include "graph/aten/torch_errors.h"
#include "graph/checks/allowed_operators.h"

namespace halftone {
namespace {

/// Reads one member of the metadata with `read`.
template <typename Read>
auto read_member(const HtMetadata& metadata, const std::string& key, Read read) {
  const nlohmann::json document = metadata.json(key);
  return read(JsonCursor(document, metadata.place(key)));
}

std::unique_ptr<Graph> read_graph(const HtMetadata& metadata) {
  const std::string& text = metadata.text(ht::kGraphKey);
  return guarded(metadata.place(ht::kGraphKey), [&] {
    std::unique_ptr<Graph> graph = parse_graph(text);
    lint_or_throw(*graph, metadata.place(ht::kGraphKey));
    require_allowed(*graph, metadata.place(ht::kGraphKey));
    return graph;
  });
}

size_t count_users(const Graph& graph) {
  size_t count = 0;
  for (const GraphInput& input : graph.inputs()) count += input.kind == InputKind::kUser;
  return count;
}

class FitCheck {
 public:
  FitCheck(const GraphMetadata& metadata, const HtFile& file) : metadata_(metadata), file_(file) {}

  std::vector<std::string> run() {
    place_tensors();
    for (const GraphInput& input : metadata_.graph->inputs()) {
      if (input.kind != InputKind::kUser) check_input(input);
    }
    check_leaves();
    for (const PackedRecord& packed : metadata_.packed) check_packed(packed);
    std::vector<const HtRecord*> samples = records_in(metadata_.lifecycle.samples);
    for (const HtValue& input : metadata_.sample_inputs) collect_records(input, samples);
    for (const HtRecord* record : samples) place(*record);
    return std::move(findings_);
  }

 private:
  template <typename... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  std::optional<HtPlace> place(const HtRecord& record) {
    try {
      return file_.place(record);
    } catch (const Error& error) {
      std::string message = error.what();
      if (message.starts_with(file_.name() + ": ")) message.erase(0, file_.name().size() + 2);
      findings_.push_back(std::move(message));
      return std::nullopt;
    }
  }

  void place_tensors() {
    for (const HtRecord& record : metadata_.tensors) places_.emplace(record.name, place(record));
  }

  void check_input(const GraphInput& input) {
    const auto found = places_.find(input.target);
    if (found == places_.end()) {
      report("the {} {} of the graph is not in the file", to_string(input.kind), quote_text(input.target));
      return;
    }
    if (!found->second || !input.value->meta()) return;  // reported already; or any tensor will do
    const HtPlace& place = *found->second;
    const TensorMeta& meta = *input.value->meta();
    bool same = scalar_type_of(place.dtype) == meta.dtype && place.sizes.size() == meta.sizes.size();
    for (size_t i = 0; same && i < meta.sizes.size(); ++i)
      same = meta.sizes[i].as_constant() == place.sizes[i];
    if (same) return;
    std::vector<std::string> sizes;
    for (const SymExpr& size : meta.sizes) sizes.push_back(size.to_string());
    report("the {} {} is {} [{}] in the file, {} [{}] in the graph", to_string(input.kind),
           quote_text(input.target), dtype_text(scalar_type_of(place.dtype)), fmt::join(place.sizes, ", "),
           dtype_text(meta.dtype), fmt::join(sizes, ", "));
  }

  /// The nesting must have as many leaves as the graph has inputs and outputs of the user.
  void check_leaves() {
    const size_t inputs = count_users(*metadata_.graph);
    size_t outputs = 0;
    for (const GraphOutput& output : metadata_.graph->outputs()) outputs += output.kind == OutputKind::kUser;
    const size_t in_leaves = metadata_.call.args.leaf_count() + metadata_.call.kwargs.leaf_count();
    const size_t out_leaves = metadata_.call.result.leaf_count();
    if (in_leaves != inputs) report("the call has {} arguments, the graph {} inputs", in_leaves, inputs);
    if (out_leaves != outputs) report("the call has {} results, the graph {} outputs", out_leaves, outputs);
    const size_t samples = metadata_.sample_inputs.size();
    if (samples != 0 && samples != inputs) report("{} sample inputs for {} inputs", samples, inputs);
  }

  void check_packed(const PackedRecord& packed) {
    const auto block = place(packed.block);
    if (block && (block->dtype != DType::kUint8 || block->sizes.size() != 1 || block->strides))
      report("the packed block {} is not one row of bytes", quote_text(packed.block.stored));
    for (const std::string& part : packed.parts) {
      if (!places_.contains(part))
        report("the packed block {} is of {}, which is not in the file", quote_text(packed.block.stored),
               quote_text(part));
    }
  }

  const GraphMetadata& metadata_;
  const HtFile& file_;
  std::map<std::string, std::optional<HtPlace>> places_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<HtRecord> read_records(const HtMetadata& metadata, const std::string& key) {
  return read_member(metadata, key, [](const JsonCursor& place) {
    std::vector<HtRecord> records;
    std::set<std::string> names;
    for (const JsonCursor& item : ht::elements(place)) {
      records.push_back(record_of(item));
      if (!names.insert(records.back().name).second)
        item.fail_here(fmt::format("tensor {} stands twice", quote_text(records.back().name)));
    }
    return records;
  });
}

GraphMetadata read_graph_metadata(const HtMetadata& metadata) {
  if (metadata.text(ht::kKindKey) == ht::kModuleKind) {
    fail(ErrorCode::kUnsupported,
         "{}: holds the tensors of a C++ module, without a graph: load_module takes it", metadata.file());
  }
  if (metadata.text(ht::kKindKey) != ht::kGraphKind) {
    fail(ErrorCode::kCorruptFile, "{}: holds a {}, not a graph", metadata.file(),
         quote_text(metadata.text(ht::kKindKey)));
  }
  GraphMetadata result;
  result.tensors = read_records(metadata, ht::kTensorsKey);
  result.call = read_member(metadata, ht::kCallKey, ht::call_of);
  result.ranges = read_member(metadata, ht::kRangesKey, ht::ranges_of);
  result.guards = read_member(metadata, ht::kGuardsKey, ht::guards_of);
  result.notes = read_member(metadata, ht::kNotesKey, ht::texts_of);
  result.sample_inputs = read_member(metadata, ht::kSampleInputsKey, ht::sample_inputs_of);
  result.configs = read_configs(metadata);
  result.lifecycle = read_lifecycle(metadata);
  result.packed = read_packed(metadata);
  result.graph = read_graph(metadata);
  return result;
}

std::vector<std::string> fit_findings(const GraphMetadata& metadata, const HtFile& file) {
  return FitCheck(metadata, file).run();
}

}  // namespace halftone
