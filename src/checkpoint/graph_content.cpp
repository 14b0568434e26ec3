#include "checkpoint/graph_content.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "checkpoint/container/ht_json.h"
#include "checkpoint/container/versions.h"
#include "checkpoint/graph_metadata.h"
#include "checkpoint/records/call_json.h"
#include "checkpoint/records/layer_configs.h"
#include "checkpoint/records/sample_values.h"
#include "graph/checks/allowed_operators.h"
#include "graph/checks/check_shapes.h"

namespace halftone {
namespace {

/// Takes the next records off a list.
class Taker {
 public:
  explicit Taker(std::span<const HtRecord> records) : rest_(records) {}
  std::vector<HtRecord> take(size_t count) {
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const HtRecord> rest_;
};

std::vector<HtValue> stored_inputs(const GraphModule& module, const GraphContent& content) {
  std::vector<HtValue> values;
  RecordSource tensors{std::span<const HtRecord>(content.inputs)};
  for (size_t i = 0; i < module.sample_inputs.size(); ++i) {
    values.push_back(store_value(module.sample_inputs[i], tensors, fmt::format("sample input {}", i)));
    if (std::holds_alternative<HtNested>(values.back().value)) {
      fail(ErrorCode::kUnsupported, "sample input {} cannot be saved: it is a {}", i,
           module.sample_inputs[i].tagKind());
    }
  }
  return values;
}

}  // namespace

GraphContent collect_graph(const GraphModule& module, const CollectOptions& options) {
  const auto tensors = module.tensors();
  const auto inputs = options.sample_inputs ? tensors_in(module.sample_inputs) : std::vector<at::Tensor>{};
  TensorCollector collector;
  for (const auto& [name, tensor] : *tensors) collector.add(name, tensor);
  const std::string preferred = fmt::format("{}input", ht::kReserved);
  for (size_t i = 0; i < inputs.size(); ++i)
    collector.add(fmt::format("sample input {}", i), inputs[i], preferred);
  GraphContent content;
  if (options.packed) content.packed = add_packed(packable_weights(module.graph(), *tensors), collector);
  for (size_t i = 0; i < options.extra.size(); ++i)
    collector.add(fmt::format("sample tensor {}", i), options.extra[i], preferred);
  content.stored = collector.finish();
  Taker taker{std::span<const HtRecord>(content.stored.records)};
  content.tensors = taker.take(tensors->size());
  content.inputs = taker.take(inputs.size());
  for (PackedRecord& packed : content.packed) packed.block = taker.take(1)[0];
  content.extra = taker.take(options.extra.size());
  return content;
}

std::map<std::string, std::string> describe_graph(const GraphModule& module, const GraphContent& content,
                                                  const CollectOptions& options) {
  nlohmann::json records = nlohmann::json::array();
  for (const HtRecord& record : content.tensors) records.push_back(record_json(record));
  auto metadata = version_metadata(ht::kGraphKind);
  metadata[ht::kTensorsKey] = records.dump();
  const auto inputs = options.sample_inputs ? stored_inputs(module, content) : std::vector<HtValue>{};
  metadata[ht::kSampleInputsKey] = ht::sample_inputs_json(inputs).dump();
  metadata[ht::kGraphKey] = print_graph(module.graph());
  metadata[ht::kCallKey] = ht::call_json(module.call_spec()).dump();
  metadata[ht::kRangesKey] = ht::ranges_json(module.ranges).dump();
  metadata[ht::kGuardsKey] = ht::guards_json(module.guards).dump();
  metadata[ht::kNotesKey] = ht::texts_json(module.notes).dump();
  metadata[ht::kConfigsKey] = configs_json(layer_configs(module.graph())).dump();
  if (!content.packed.empty()) metadata[ht::kPackedKey] = packed_json(content.packed).dump();
  return metadata;
}

void require_readable_graph(const std::map<std::string, std::string>& metadata, const std::string& path) {
  try {
    const GraphMetadata read = read_graph_metadata(HtMetadata(metadata, path));
    if (print_graph(*read.graph) != metadata.at(ht::kGraphKey))
      fail(ErrorCode::kInternal, "{}: the graph's text does not read back to the same graph", path);
  } catch (const Error& error) {
    fail(error.code() == ErrorCode::kInternal ? ErrorCode::kInternal : ErrorCode::kUnsupported,
         "this model cannot be saved, it would not load again: {}", error.what());
  }
}

std::shared_ptr<GraphModule> restore_graph(const HtFile& file) {
  GraphMetadata metadata = read_graph_metadata(file.metadata());
  const auto findings = fit_findings(metadata, file);
  if (!findings.empty()) fail(ErrorCode::kCorruptFile, "{}: {}", file.name(), fmt::join(findings, "; "));

  fill_empty_tensors(*metadata.graph);
  TensorRestorer restorer(file);
  TensorMap tensors;
  for (const HtRecord& record : metadata.tensors) tensors.emplace(record.name, restorer.restore(record));
  auto module =
      std::make_shared<GraphModule>(std::move(metadata.graph), std::move(tensors), std::move(metadata.call));
  for (const HtValue& input : metadata.sample_inputs)
    module->sample_inputs.push_back(restore_value(input, restorer));
  module->ranges = std::move(metadata.ranges);
  module->guards = std::move(metadata.guards);
  module->notes = std::move(metadata.notes);
  module->name = file.name();
  check_shapes(*module);
  if (!metadata.packed.empty()) {
    const auto loaded = module->tensors();
    for (std::string& note :
         adopt_blocks(packable_weights(module->graph(), *loaded), metadata.packed, restorer))
      module->notes.push_back(std::move(note));
  }
  return module;
}

}  // namespace halftone
