// verify_checkpoint: everything that can be wrong with a .ht file, as a list.
#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/graph_content.h"
#include "checkpoint/graph_metadata.h"
#include "checkpoint/records/backend_record.h"
#include "checkpoint/records/packed_blocks.h"
#include "checkpoint/records/quantized_records.h"
#include "checkpoint/records/sample_values.h"
#include "checkpoint/records/stored_tensors.h"
#include "graph/aten/torch_errors.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/message.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

/// More are counted only.
constexpr size_t kMaxFindings = 100;

size_t count_static_int8(const Graph& graph) {
  size_t count = 0;
  for (const auto& node : graph.nodes()) {
    count += is_static_int8_layer(*node);
    for (const NamedArgument& input : node->inputs()) {
      const auto* subgraph = input.value.get_if<std::shared_ptr<Graph>>();
      if (subgraph != nullptr && *subgraph != nullptr) count += count_static_int8(**subgraph);
    }
  }
  return count;
}

class Verifier {
 public:
  Verifier(const HtFile& file, VerifyDepth depth) : file_(file), deep_(depth == VerifyDepth::kEverything) {}

  CheckpointInfo run() {
    describe_file();
    if (deep_) check_digests();
    // What stands behind a damaged frame or in a version that we do not know would only be guessed at.
    if (!attempt([&] { file_.require_readable(/*verify=*/false); })) return finish();
    if (deep_) {
      for (const std::string& finding : file_.layout_findings()) report(finding);
    }
    attempt([&] { info_.configs = read_configs(file_.metadata()); });
    check_config_types();
    const std::string& kind = info_.kind;
    if (kind == ht::kGraphKind) {
      attempt([&] { check_graph(); });
    } else if (kind == ht::kModuleKind) {
      attempt([&] { check_module(); });
    } else {
      report(fmt::format("{} is no kind of content that version {} has", quote_text(kind), info_.version));
    }
    return finish();
  }

 private:
  void report(const std::string& finding) {
    if (info_.findings.size() < kMaxFindings) {
      info_.findings.push_back(bounded_message(finding));
    } else {
      ++unnamed_;
    }
  }

  CheckpointInfo finish() {
    if (unnamed_ > 0) info_.findings.push_back(fmt::format("and {} more", unnamed_));
    return std::move(info_);
  }

  /// Whether it went without an error; the error is a finding.
  template <typename Check>
  bool attempt(Check check) {
    try {
      guarded(file_.name(), check);
      return true;
    } catch (const Error& error) {
      std::string message = error.what();
      if (message.starts_with(file_.name() + ": ")) message.erase(0, file_.name().size() + 2);
      report(message);
      return false;
    }
  }

  void describe_file() {
    info_.version = static_cast<int>(std::min<int64_t>(file_.version(), std::numeric_limits<int>::max()));
    info_.sha256 = file_.stored_digest();
    info_.bytes = static_cast<int64_t>(file_.size());
    for (const SafetensorsEntry& entry : file_.tensors().entries()) info_.tensors += !is_filler(entry.name);
    attempt([&] { info_.written_by = file_.metadata().text(ht::kWriterKey); });
    attempt([&] { info_.kind = file_.metadata().text(ht::kKindKey); });
    if (file_.metadata().has(ht::kNeedsKey)) info_.needs = file_.metadata().text(ht::kNeedsKey);
    const SafetensorsEntry* table = file_.tensors().try_entry(ht::kDigestTable);
    if (table != nullptr && !table->shape.empty())
      info_.chunks = static_cast<size_t>(std::max<int64_t>(table->shape[0], 1) - 1);
    info_.bytes_checked = deep_;
  }

  /// The one digest of all bytes beside those of the chunks: together they take as long as the first alone.
  void check_digests() {
    auto whole = std::async([&] { return file_.digest_matches(); });
    std::string finding;
    if (file_.version() == 2) attempt([&] { finding = file_.chunk_finding(); });
    if (!finding.empty()) {
      report(finding);
    } else if (!whole.get()) {
      report("the checksum does not match: the file was damaged or changed");
    }
  }

  void check_backend(const HtLifecycle& lifecycle) {
    if (!lifecycle.backend) return;
    const HtBackend& backend = *lifecycle.backend;
    info_.backend = backend.type;
    info_.backend_config = backend.config;
    info_.device = backend.device;
    info_.state = backend.state;
    info_.weights = backend.converted ? "converted" : "original";
    info_.tuning = lifecycle.tuning;
    for (const HtSample& sample : lifecycle.samples)
      attempt([&] { info_.samples.push_back(describe(sample, &file_)); });
    attempt([&] { device_of(backend, file_.metadata()); });
    attempt([&] {
      const auto kind = recipe_of(backend, file_.metadata());
      info_.backend = fmt::format("{}({})", kind->type(), kind->describe_config());
    });
  }

  void check_config_types() {
    for (const auto& [layer, config] : info_.configs) {
      attempt([&, &layer = layer, &config = config] {
        try {
          if (QuantConfig::from_json(config).to_json() != config)
            report(fmt::format("the config of {} is not in canonical form", quote_text(layer)));
        } catch (const Error& error) {
          throw error.with_context(fmt::format("the config of {}", quote_text(layer)));
        }
      });
    }
  }

  void use(const HtRecord& record) { used_.insert(record.stored); }

  void check_unused() {
    for (const SafetensorsEntry& entry : file_.tensors().entries()) {
      if (!is_filler(entry.name) && !used_.contains(entry.name))
        report(fmt::format("the stored tensor {} belongs to nothing", quote_text(entry.name)));
    }
  }

  void check_graph() {
    const GraphMetadata metadata = read_graph_metadata(file_.metadata());
    auto findings = fit_findings(metadata, file_);
    const bool fits = findings.empty();
    for (const std::string& finding : findings) report(finding);
    info_.static_int8_layers = count_static_int8(*metadata.graph);
    if (layer_configs(*metadata.graph) != metadata.configs)
      report("the configs of the layers are not those of the graph");
    if (fits && deep_) {
      TensorRestorer restorer(file_);
      TensorMap tensors;
      for (const HtRecord& record : metadata.tensors) tensors.emplace(record.name, restorer.restore(record));
      restore_samples(metadata.lifecycle.samples, restorer);
      for (const std::string& finding :
           block_findings(packable_weights(*metadata.graph, tensors), metadata.packed, restorer))
        report(finding);
    }
    if (fits) attempt([&] { restore_graph(file_); });  // what the graph declares is compared there
    check_backend(metadata.lifecycle);
    for (const HtRecord& record : metadata.tensors) use(record);
    for (const PackedRecord& packed : metadata.packed) use(packed.block);
    std::vector<const HtRecord*> samples = records_in(metadata.lifecycle.samples);
    for (const HtValue& input : metadata.sample_inputs) collect_records(input, samples);
    for (const HtRecord* record : samples) use(*record);
    check_unused();
  }

  void check_module() {
    read_lifecycle(file_.metadata());  // a module has none
    TensorRestorer restorer(file_);
    QuantizedRestorer weights(file_, restorer);
    std::vector<Packable> packables;
    for (const HtRecord& record : read_records(file_.metadata(), ht::kTensorsKey)) {
      attempt([&] { restorer.restore(record); });
      use(record);
    }
    for (const QuantizedRecord& record : read_quantized(file_.metadata())) {
      attempt([&] { packables.push_back(packable(record.name, weights.restore(record))); });
      for (const HtRecord& part : record.parts) use(part);
    }
    const std::vector<PackedRecord> blocks = read_packed(file_.metadata());
    for (const PackedRecord& packed : blocks) {
      attempt([&] { restorer.restore(packed.block); });
      use(packed.block);
    }
    if (deep_) {
      for (const std::string& finding : block_findings(packables, blocks, restorer)) report(finding);
    }
    check_unused();
  }

  const HtFile& file_;
  const bool deep_;
  CheckpointInfo info_;
  std::set<std::string> used_;
  size_t unnamed_ = 0;  ///< findings past the most that are listed
};

}  // namespace

CheckpointInfo verify_checkpoint(const std::string& path, VerifyDepth depth) {
  // Read, not mapped: a file that is shortened meanwhile must give a finding, not a signal. Only
  // its first pages are touched where the metadata are all that is asked for.
  const LoadMode mode = depth == VerifyDepth::kEverything ? LoadMode::kRead : LoadMode::kMap;
  const HtFile file = guarded(path, [&] { return HtFile::open(path, mode); });
  return Verifier(file, depth).run();
}

}  // namespace halftone
