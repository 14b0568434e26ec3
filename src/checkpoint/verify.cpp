// verify_checkpoint: everything that can be wrong with a .ht file, as a list.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/text.h"
#include "base/errors.h"
#include "checkpoint/graph_metadata.h"
#include "checkpoint/guarded.h"
#include "checkpoint/quantized_records.h"
#include "checkpoint/stored_tensors.h"
#include "halftone/checkpoint.h"

namespace halftone {
namespace {

class Verifier {
 public:
  explicit Verifier(const HtFile& file) : file_(file) {}

  CheckpointInfo run() {
    describe();
    if (!file_.digest_matches()) report("the checksum does not match: the file was damaged or changed");
    // What stands behind a damaged frame or in a version that we do not know would only be guessed at.
    if (!attempt([&] { file_.require_readable(/*verify=*/false); })) return std::move(info_);
    for (std::string& finding : file_.layout_findings()) info_.findings.push_back(std::move(finding));
    attempt([&] { info_.configs = read_configs(file_.metadata()); });
    check_config_types();
    const std::string& kind = info_.kind;
    if (kind == ht::kGraphKind) {
      attempt([&] { check_graph(); });
    } else if (kind == ht::kModuleKind) {
      attempt([&] { check_module(); });
    } else {
      report(fmt::format("{} is no kind of content that version {} has", quote_text(kind), ht::kVersion));
    }
    return std::move(info_);
  }

 private:
  void report(std::string finding) { info_.findings.push_back(std::move(finding)); }

  /// Whether it went without an error; the error is a finding.
  template <typename Check>
  bool attempt(Check check) {
    try {
      guarded(file_.name(), check);
      return true;
    } catch (const Error& error) {
      std::string message = error.what();
      if (message.starts_with(file_.name() + ": ")) message.erase(0, file_.name().size() + 2);
      report(std::move(message));
      return false;
    }
  }

  void describe() {
    info_.version = static_cast<int>(std::min<int64_t>(file_.version(), std::numeric_limits<int>::max()));
    info_.sha256 = file_.stored_digest();
    info_.bytes = static_cast<int64_t>(file_.size());
    for (const SafetensorsEntry& entry : file_.tensors().entries()) info_.tensors += !is_filler(entry.name);
    attempt([&] { info_.written_by = file_.metadata().text(ht::kWriterKey); });
    attempt([&] { info_.kind = file_.metadata().text(ht::kKindKey); });
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
    for (std::string& finding : findings) report(std::move(finding));
    if (layer_configs(*metadata.graph) != metadata.configs)
      report("the configs of the layers are not those of the graph");
    if (fits) {
      TensorRestorer restorer(file_);
      for (const HtRecord& record : metadata.tensors) restorer.restore(record);
    }
    for (const HtRecord& record : metadata.tensors) use(record);
    for (const PackedRecord& packed : metadata.packed) use(packed.block);
    for (const ht::StoredInput& input : metadata.sample_inputs) {
      if (const auto* record = std::get_if<HtRecord>(&input)) use(*record);
    }
    check_unused();
  }

  void check_module() {
    TensorRestorer restorer(file_);
    QuantizedRestorer weights(file_, restorer);
    for (const HtRecord& record : read_records(file_.metadata(), ht::kTensorsKey)) {
      attempt([&] { restorer.restore(record); });
      use(record);
    }
    for (const QuantizedRecord& record : read_quantized(file_.metadata())) {
      attempt([&] { weights.restore(record); });
      for (const HtRecord& part : record.parts) use(part);
    }
    for (const PackedRecord& packed : read_packed(file_.metadata())) {
      attempt([&] { restorer.restore(packed.block); });
      use(packed.block);
    }
    check_unused();
  }

  const HtFile& file_;
  CheckpointInfo info_;
  std::set<std::string> used_;
};

}  // namespace

CheckpointInfo verify_checkpoint(const std::string& path) {
  // Read, not mapped: a file that somebody else shortens meanwhile must give a finding, not a signal.
  const HtFile file = guarded(path, [&] { return HtFile::open(path, LoadMode::kRead); });
  return Verifier(file).run();
}

}  // namespace halftone
