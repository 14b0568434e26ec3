// save_module and load_module: parameters and buffers of C++ modules as .ht files.
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_writer.h"
#include "checkpoint/container/versions.h"
#include "checkpoint/graph_metadata.h"
#include "checkpoint/records/packed_blocks.h"
#include "checkpoint/records/quantized_records.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/dtypes.h"
#include "graph/aten/torch_errors.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/quant/qat.h"
#include "halftone/quant/quantized_tensor.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

/// Parameters and buffers by name. The tensors are handles: what is done to them is done to the module.
std::map<std::string, at::Tensor> handles_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> handles;
  for (const auto& item : module.named_parameters()) handles.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) handles.emplace(item.key(), item.value());
  return handles;
}

/// The content of a module for a file.
struct ModuleContent {
  StoredTensors stored;
  std::vector<HtRecord> tensors;
  std::vector<QuantizedRecord> quantized;
  std::vector<PackedRecord> packed;
  LayerConfigs configs;
};

/// Describes a quantized parameter; its parts' records follow when the collector is finished.
QuantizedRecord add_quantized(const std::string& name, const at::Tensor& tensor, TensorCollector& collector) {
  if (is_transposed(tensor))
    fail(ErrorCode::kUnsupported, "{}: a transposed view of a quantized weight cannot be saved", name);
  const QuantizedWeight& weight = quantized_weight_of(tensor);
  const auto dtype = try_dtype_of(weight.dtype);
  if (!dtype) fail(ErrorCode::kUnsupported, "{}: files have no dtype for {}", name, dtype_text(weight.dtype));
  for (const auto& [part, stored] : weight.parts) collector.add(part, stored, part_name(name, part));
  return {name, weight.config.to_json(), weight.sizes, *dtype, std::vector<HtRecord>(weight.parts.size())};
}

ModuleContent collect(const torch::nn::Module& module, const SaveOptions& options) {
  const auto handles = handles_of(module);
  TensorCollector collector;
  ModuleContent content;
  std::vector<Packable> weights;
  size_t plain = 0;
  for (const auto& [name, tensor] : handles) {
    if (is_quantized_tensor(tensor)) continue;
    collector.add(name, tensor);
    ++plain;
  }
  for (const auto& [name, tensor] : handles) {
    if (!is_quantized_tensor(tensor)) continue;
    content.quantized.push_back(add_quantized(name, tensor, collector));
    content.configs.emplace(layer_of_tensor(name), content.quantized.back().config);
    weights.push_back(packable(name, quantized_weight_of(tensor)));
  }
  if (options.packed) content.packed = add_packed(weights, collector);
  content.stored = collector.finish();
  auto next = content.stored.records.begin();
  content.tensors.assign(next, next + static_cast<std::ptrdiff_t>(plain));
  next += static_cast<std::ptrdiff_t>(plain);
  for (QuantizedRecord& record : content.quantized) {
    for (HtRecord& part : record.parts) part = *next++;
  }
  for (PackedRecord& record : content.packed) record.block = *next++;
  return content;
}

/// A value for one parameter or buffer, ready to be put in.
struct Assignment {
  std::string name;
  at::Tensor handle;
  at::Tensor value;
  bool requires_grad = false;
  std::string source;  ///< of the file: equal ones are one tensor there
};

class ModuleLoader {
 public:
  ModuleLoader(torch::nn::Module& module, const HtFile& file)
      : file_(file), handles_(handles_of(module)), tensors_(file), weights_(file, tensors_) {}

  std::vector<Assignment> prepare() {
    if (file_.metadata().text(ht::kKindKey) != ht::kModuleKind) {
      fail(ErrorCode::kInvalidArgument, "{}: holds a {}, not a module's tensors", file_.name(),
           quote_text(file_.metadata().text(ht::kKindKey)));
    }
    for (const HtRecord& record : read_records(file_.metadata(), ht::kTensorsKey)) {
      add(record.name, record_json(record).dump(), record.requires_grad,
          [&] { return tensors_.restore(record); });
    }
    const auto packed = read_packed(file_.metadata());
    std::vector<Packable> packables;
    for (const QuantizedRecord& record : read_quantized(file_.metadata())) {
      add(record.name, quantized_json({record}).dump(), false, [&] {
        const QuantizedWeight& weight = weights_.restore(record);
        packables.push_back(packable(record.name, weight));
        return make_quantized_tensor(weight, layer_of_tensor(record.name));
      });
    }
    for (const auto& [name, handle] : handles_) {
      if (!seen_.contains(name))
        differences_.push_back(fmt::format("{} is not in the file", quote_text(name)));
    }
    check_ties();
    if (!differences_.empty()) {
      fail(ErrorCode::kInvalidArgument, "{} does not fit the module: {}", file_.name(),
           fmt::join(differences_, "; "));
    }
    adopt_blocks(packables, packed, tensors_);
    return std::move(assignments_);
  }

 private:
  template <typename Make>
  void add(const std::string& name, std::string source, bool requires_grad, Make make) {
    if (!seen_.emplace(name).second)
      fail(ErrorCode::kCorruptFile, "{}: {} stands twice", file_.name(), quote_text(name));
    const at::Tensor value = guarded(file_.name(), make);
    const auto found = handles_.find(name);
    if (found == handles_.end()) {
      differences_.push_back(fmt::format("{} is not in the module", quote_text(name)));
      return;
    }
    const at::Tensor& handle = found->second;
    if (value.scalar_type() != handle.scalar_type() || value.sizes() != handle.sizes()) {
      differences_.push_back(fmt::format("{} is {} [{}] in the file, {} [{}] in the module", quote_text(name),
                                         dtype_text(value.scalar_type()), fmt::join(value.sizes(), ", "),
                                         dtype_text(handle.scalar_type()), fmt::join(handle.sizes(), ", ")));
      return;
    }
    assignments_.push_back({name, handle, value, requires_grad, std::move(source)});
  }

  /// One tensor of the module cannot become two.
  void check_ties() {
    std::map<const c10::TensorImpl*, const Assignment*> first;
    for (const Assignment& assignment : assignments_) {
      const auto [place, fresh] = first.emplace(assignment.handle.unsafeGetTensorImpl(), &assignment);
      if (fresh || same_source(*place->second, assignment)) continue;
      differences_.push_back(fmt::format("{} and {} are one tensor in the module and two in the file",
                                         quote_text(place->second->name), quote_text(assignment.name)));
    }
  }

  static bool same_source(const Assignment& a, const Assignment& b) {
    if (is_quantized_tensor(a.value) != is_quantized_tensor(b.value)) return false;
    if (!is_quantized_tensor(a.value)) {
      return a.value.numel() == 0 ||
             (a.value.const_data_ptr() == b.value.const_data_ptr() && a.value.strides() == b.value.strides());
    }
    const auto& parts = quantized_weight_of(a.value).parts;
    const auto& others = quantized_weight_of(b.value).parts;
    if (parts.empty() || others.empty()) return false;
    return parts[0].second.const_data_ptr() == others[0].second.const_data_ptr();
  }

  const HtFile& file_;
  std::map<std::string, at::Tensor> handles_;
  TensorRestorer tensors_;
  QuantizedRestorer weights_;
  std::set<std::string> seen_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> differences_;
};

void assign(at::Tensor& handle, const at::Tensor& value, bool requires_grad) {
  // A weight in quantization-aware training stays one: it only gets other memory, as torch::load gives it.
  if (is_fake_quantized(handle) && !is_quantized_tensor(value)) {
    const at::NoGradGuard no_grad;
    handle.set_(value);
    return;
  }
  // In this order: a quantized tensor takes no gradient, and one that requires it takes no quantized data.
  if (handle.requires_grad()) handle.set_requires_grad(false);
  handle.set_data(value);
  if (requires_grad) handle.set_requires_grad(true);
}

/// All or nothing: torch may refuse one in the middle.
void commit(std::vector<Assignment>& assignments) {
  const c10::InferenceMode normal(false);
  std::vector<std::pair<at::Tensor, bool>> before;
  for (const Assignment& assignment : assignments)
    before.emplace_back(assignment.handle.detach(), assignment.handle.requires_grad());
  size_t done = 0;
  try {
    for (; done < assignments.size(); ++done) {
      Assignment& one = assignments[done];
      assign(one.handle, is_quantized_tensor(one.value) ? one.value : one.value.detach(), one.requires_grad);
    }
  } catch (...) {
    for (size_t i = 0; i <= done; ++i) assign(assignments[i].handle, before[i].first, before[i].second);
    throw;
  }
}

}  // namespace

void save_module(const torch::nn::Module& module, const std::string& path, const SaveOptions& options) {
  const ModuleContent content = collect(module, options);
  nlohmann::json records = nlohmann::json::array();
  for (const HtRecord& record : content.tensors) records.push_back(record_json(record));
  auto metadata = version_metadata(ht::kModuleKind);
  metadata[ht::kTensorsKey] = records.dump();
  metadata[ht::kQuantizedKey] = quantized_json(content.quantized).dump();
  metadata[ht::kConfigsKey] = configs_json(content.configs).dump();
  if (!content.packed.empty()) metadata[ht::kPackedKey] = packed_json(content.packed).dump();
  write_ht(path, content.stored.stored, metadata);
}

void load_module(torch::nn::Module& module, const std::string& path, const OpenOptions& options) {
  const HtFile file =
      guarded(path, [&] { return HtFile::open(path, options.map ? LoadMode::kMap : LoadMode::kRead); });
  file.require_readable(options.verify);
  auto assignments = ModuleLoader(module, file).prepare();
  commit(assignments);
}

}  // namespace halftone
