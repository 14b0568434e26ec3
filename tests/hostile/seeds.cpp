#include "seeds.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "archive/zip/zip.h"
#include "checkpoint/graph_content.h"
#include "compiler/passes/passes.h"
#include "graph/aten/dtypes.h"
#include "halftone/base/error.h"
#include "halftone/ptq/static_int8.h"
#include "halftone/quant/quantize.h"
#include "models.h"
#include "quant/graph/quantize_graph.h"

namespace halftone::hostile {
namespace {

std::shared_ptr<GraphModule> copy_of(const GraphModule& module) {
  auto copy = std::make_shared<GraphModule>(module.graph().clone(), *module.tensors(), module.call_spec());
  copy->ranges = module.ranges;
  copy->guards = module.guards;
  copy->sample_inputs = module.sample_inputs;
  copy->name = module.name;
  return copy;
}

HtParts parts_of(const GraphModule& module, std::string name, bool packed) {
  const CollectOptions collect{.packed = packed};
  const GraphContent content = collect_graph(module, collect);
  HtParts parts{std::move(name), describe_graph(module, content, collect), {}};
  for (const SafetensorsTensor& stored : content.stored.stored) {
    at::Tensor tensor =
        at::empty(stored.shape, at::TensorOptions(scalar_type_of(stored.dtype)));  // a copy of the bytes
    std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    parts.tensors.emplace_back(stored.name, tensor);
  }
  return parts;
}

/// The graph as the compiler rewrites it: a file may hold fused operators too.
std::shared_ptr<GraphModule> rewritten(const GraphModule& module) {
  auto copy = copy_of(module);
  TensorMap tensors = *copy->tensors();
  std::vector<std::string> log;
  compiler::run_passes(copy->mutable_graph(), tensors, copy->ranges, {}, log);
  std::set<std::string> used;
  for (const GraphInput& input : copy->graph().inputs()) used.insert(input.target);
  std::erase_if(tensors, [&](const auto& item) { return !used.contains(item.first); });
  auto result = std::make_shared<GraphModule>(copy->graph().clone(), std::move(tensors), copy->call_spec());
  result->ranges = copy->ranges;
  result->sample_inputs = copy->sample_inputs;
  result->name = copy->name;
  return result;
}

class SeedMaker {
 public:
  void add(const GraphModule& module, const std::string& name, bool packed = false) {
    seeds.push_back(parts_of(module, name, packed));
    for (const auto& node : module.graph().nodes()) targets.insert(node->target());
  }

  /// Every scheme on every model that it takes.
  void add_quantized(const GraphModule& module) {
    for (const Scheme& scheme : schemes()) {
      if (scheme.config.is_noquant()) continue;
      auto quantized = copy_of(module);
      try {
        quantize_(*quantized, scheme.config, {.embeddings = module.name == "decoder"});
      } catch (const Error&) {
        continue;  // nothing to quantize, or a group that does not divide
      }
      if (!fill_metas(*quantized)) continue;
      add(*quantized, fmt::format("{} {}", module.name, scheme.names[0]));
      add(*quantized, fmt::format("{} {} packed", module.name, scheme.names[0]), true);
      add(*rewritten(*quantized), fmt::format("{} {} rewritten", module.name, scheme.names[0]));
    }
  }

  /// Weights of 16 values in each group of 32, which become int4 with zero points that are floats.
  void add_levels(const GraphModule& module) {
    TensorMap tensors = *module.tensors();
    for (auto& [name, tensor] : tensors) {
      if (tensor.dim() != 2 || tensor.size(1) % 32 != 0 || tensor.scalar_type() != at::kFloat) continue;
      const at::Tensor groups = tensor.reshape({tensor.size(0), -1, 32});
      const at::Tensor low = groups.amin(2, true), step = (groups.amax(2, true) - low) / 15;
      tensor = (((groups - low) / step).round() * step + low).reshape(tensor.sizes());
    }
    GraphModule rounded(module.graph().clone(), std::move(tensors), module.call_spec());
    for (const auto activations : {Int4Activations::kFloat, Int4Activations::kInt8}) {
      auto quantized = copy_of(rounded);
      quantized->ranges = module.ranges;
      quantized->sample_inputs = module.sample_inputs;
      try {
        quantize_keeping_levels(*quantized, activations, Bf16WeightOnlyConfig{}, {});
      } catch (const Error&) {
        return;  // nothing to quantize
      }
      const auto& nodes = quantized->graph().nodes();
      const bool found = std::any_of(nodes.begin(), nodes.end(),
                                     [](const auto& node) { return node->is("halftone::int4_linear"); });
      if (!found || !fill_metas(*quantized)) continue;
      const std::string name = fmt::format("{} levels {}", module.name, static_cast<int>(activations));
      add(*quantized, name);
      add(*quantized, name + " packed", true);
      add(*rewritten(*quantized), name + " rewritten");
    }
  }

  void add_static(const GraphModule& module) {
    try {
      const StaticInt8Result result = quantize_static(module, {module.sample_inputs}, {.error_calls = 0});
      for (const auto& [made, what] :
           {std::pair(result.reference, "reference"), {result.module, "int8static"}}) {
        made->sample_inputs = module.sample_inputs;
        add(*made, fmt::format("{} {}", module.name, what));
      }
      add(*result.module, fmt::format("{} int8static packed", module.name), true);
      add(*rewritten(*result.module), fmt::format("{} int8static rewritten", module.name));
    } catch (const Error&) {
      // no pattern of the backend config takes it
    }
  }

  std::vector<HtParts> seeds;
  std::set<std::string> targets;
};

std::map<std::string, std::string> members_of(const std::string& path) {
  const auto bytes = FileBytes::open(path, LoadMode::kRead);
  std::map<std::string, std::string> members;
  const ZipReader zip(bytes->bytes(), path);
  for (const ZipMember& member : zip.members())
    members[member.name] = {reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size()};
  return members;
}

}  // namespace

bool fill_metas(GraphModule& module) {
  std::map<const Value*, TensorMeta> metas;
  const auto shared = std::shared_ptr<const GraphModule>(std::shared_ptr<void>(), &module);
  try {
    Session session(shared);
    session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].isTensor() || !outputs[i].toTensor().defined()) continue;
        const at::Tensor& tensor = outputs[i].toTensor();
        TensorMeta meta{.dtype = tensor.scalar_type()};
        for (const int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
        for (const int64_t stride : tensor.strides()) meta.strides.emplace_back(stride);
        metas[node.output(i)] = std::move(meta);
      }
    });
    std::vector<c10::IValue> inputs;
    for (const c10::IValue& input : module.sample_inputs)
      inputs.push_back(input.isTensor() ? c10::IValue(input.toTensor().clone()) : input);
    session.run(std::move(inputs));
  } catch (const Error&) {
    return false;
  }
  for (auto& [value, meta] : metas) module.mutable_graph().value(value->name())->set_meta(std::move(meta));
  return true;
}

Seeds make_seeds(const std::string& pt2_folder) {
  SeedMaker maker;
  for (const auto& module : make_models()) {
    // Symbolic metas are written by hand: a run gives numbers.
    if (module->ranges.empty() && !fill_metas(*module))
      throw Error(ErrorCode::kInternal, module->name + ": the seed itself does not run");
    maker.add(*module, module->name);
    maker.add(*rewritten(*module), module->name + " rewritten");
    maker.add_quantized(*module);
    maker.add_levels(*module);
    maker.add_static(*module);
  }
  Seeds seeds{std::move(maker.seeds), {}, {maker.targets.begin(), maker.targets.end()}};
  for (const auto& entry : std::filesystem::directory_iterator(pt2_folder)) {
    if (entry.path().extension() == ".pt2")
      seeds.pt2.push_back({entry.path().filename(), members_of(entry.path())});
  }
  std::sort(seeds.pt2.begin(), seeds.pt2.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return seeds;
}

}  // namespace halftone::hostile
