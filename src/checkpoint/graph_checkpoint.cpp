// save_checkpoint and load_checkpoint: captured models as .ht files.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "checkpoint/call_json.h"
#include "checkpoint/graph_metadata.h"
#include "checkpoint/guarded.h"
#include "checkpoint/ht_json.h"
#include "checkpoint/ht_writer.h"
#include "checkpoint/layer_configs.h"
#include "checkpoint/stored_tensors.h"
#include "checkpoint/versions.h"
#include "halftone/checkpoint.h"

namespace halftone {
namespace {

std::vector<c10::IValue> tensors_among(const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> tensors;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) tensors.push_back(input);
  }
  return tensors;
}

/// What becomes of a module on its way to a file.
struct GraphContent {
  StoredTensors stored;
  std::vector<HtRecord> tensors;
  std::vector<HtRecord> samples;
  std::vector<PackedRecord> packed;
};

/// Model tensors first, in the order of their names, then those of the sample inputs, then packed copies.
GraphContent collect(const GraphModule& module, const SaveOptions& options) {
  const auto tensors = module.tensors();
  const auto samples = tensors_among(module.sample_inputs);
  TensorCollector collector;
  for (const auto& [name, tensor] : *tensors) collector.add(name, tensor);
  for (size_t i = 0; i < samples.size(); ++i) {
    collector.add(fmt::format("sample input {}", i), samples[i].toTensor(),
                  fmt::format("{}input", ht::kReserved));
  }
  GraphContent content;
  if (options.packed) content.packed = add_packed(packable_weights(module.graph(), *tensors), collector);
  content.stored = collector.finish();
  const std::span<const HtRecord> records = content.stored.records;
  const auto first = records.first(tensors->size());
  const auto second = records.subspan(first.size(), samples.size());
  content.tensors.assign(first.begin(), first.end());
  content.samples.assign(second.begin(), second.end());
  for (size_t i = 0; i < content.packed.size(); ++i)
    content.packed[i].block = records[first.size() + second.size() + i];
  return content;
}

std::map<std::string, std::string> describe(const GraphModule& module, const GraphContent& content) {
  nlohmann::json records = nlohmann::json::array();
  for (const HtRecord& record : content.tensors) records.push_back(record_json(record));
  auto metadata = version_metadata(ht::kGraphKind);
  metadata[ht::kTensorsKey] = records.dump();
  metadata[ht::kSampleInputsKey] = ht::sample_inputs_json(module.sample_inputs, content.samples).dump();
  metadata[ht::kGraphKey] = print_graph(module.graph());
  metadata[ht::kCallKey] = ht::call_json(module.call_spec()).dump();
  metadata[ht::kRangesKey] = ht::ranges_json(module.ranges).dump();
  metadata[ht::kGuardsKey] = ht::guards_json(module.guards).dump();
  metadata[ht::kNotesKey] = ht::texts_json(module.notes).dump();
  metadata[ht::kConfigsKey] = configs_json(layer_configs(module.graph())).dump();
  if (!content.packed.empty()) metadata[ht::kPackedKey] = packed_json(content.packed).dump();
  return metadata;
}

/// A file that cannot be read back must not be written: nesting that is too deep, a graph whose text does not
/// parse.
void require_readable(const std::map<std::string, std::string>& metadata, const std::string& path) {
  try {
    const GraphMetadata read = read_graph_metadata(HtMetadata(metadata, path));
    if (print_graph(*read.graph) != metadata.at(ht::kGraphKey))
      fail(ErrorCode::kInternal, "{}: the graph's text does not read back to the same graph", path);
  } catch (const Error& error) {
    fail(error.code() == ErrorCode::kInternal ? ErrorCode::kInternal : ErrorCode::kUnsupported,
         "this model cannot be saved, it would not load again: {}", error.what());
  }
}

std::shared_ptr<GraphModule> load(const std::string& path, const CheckpointOptions& options) {
  const HtFile file = HtFile::open(path, options.map ? LoadMode::kMap : LoadMode::kRead);
  file.require_readable(options.verify);
  GraphMetadata metadata = read_graph_metadata(file.metadata());
  const auto findings = fit_findings(metadata, file);
  if (!findings.empty()) fail(ErrorCode::kCorruptFile, "{}: {}", path, fmt::join(findings, "; "));

  TensorRestorer restorer(file);
  TensorMap tensors;
  for (const HtRecord& record : metadata.tensors) tensors.emplace(record.name, restorer.restore(record));
  auto module =
      std::make_shared<GraphModule>(std::move(metadata.graph), std::move(tensors), std::move(metadata.call));
  for (const ht::StoredInput& input : metadata.sample_inputs) {
    const auto* record = std::get_if<HtRecord>(&input);
    module->sample_inputs.push_back(record != nullptr ? c10::IValue(restorer.restore(*record))
                                                      : std::get<c10::IValue>(input));
  }
  module->ranges = std::move(metadata.ranges);
  module->guards = std::move(metadata.guards);
  module->notes = std::move(metadata.notes);
  module->name = path;
  if (!metadata.packed.empty()) {
    const auto loaded = module->tensors();
    for (std::string& note :
         adopt_blocks(packable_weights(module->graph(), *loaded), metadata.packed, restorer))
      module->notes.push_back(std::move(note));
  }
  return module;
}

}  // namespace

void save_checkpoint(const GraphModule& module, const std::string& path, const SaveOptions& options) {
  const GraphContent content = collect(module, options);
  const auto metadata = describe(module, content);
  require_readable(metadata, path);
  write_ht(path, content.stored.stored, metadata);
}

std::shared_ptr<GraphModule> load_checkpoint(const std::string& path, const CheckpointOptions& options) {
  return guarded(path, [&] { return load(path, options); });
}

}  // namespace halftone
