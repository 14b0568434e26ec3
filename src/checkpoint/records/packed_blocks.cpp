#include "checkpoint/records/packed_blocks.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"
#include "checkpoint/records/call_json.h"
#include "graph/operators/operands.h"
#include "halftone/cli/message.h"
#include "quant/graph/quantized_node.h"
#include "quant/static_int8/product.h"
#include "quant/weight/packing_cache.h"

namespace halftone {
namespace {

bool is_activation(const std::string& argument) {
  return argument == "x" || argument == "indices" || argument == "bias";
}

/// The name of the module's tensor behind an operand; nothing if it is computed or given by the caller.
std::optional<std::string> try_tensor_name(const Argument& operand) {
  const Value* value = operand.value();
  if (value == nullptr || value->producer() != nullptr) return std::nullopt;
  const GraphInput& input = value->graph().inputs()[value->index()];
  if (input.kind == InputKind::kUser) return std::nullopt;
  return input.target;
}

/// The parts of a node in the schema's order; nothing if one of them is not stored.
std::optional<std::vector<std::string>> try_part_names(const Node& node) {
  std::vector<std::string> names;
  for (const c10::Argument& argument : node.op()->schema().arguments()) {
    const Argument* operand = node.try_input(argument.name());
    if (operand == nullptr || is_activation(argument.name())) continue;
    if (operand->value() == nullptr) continue;  // a constant, or None
    auto name = try_tensor_name(*operand);
    if (!name) return std::nullopt;
    names.push_back(std::move(*name));
  }
  return names;
}

/// Calls the node's operator on an empty batch: it packs at its first call.
void call_on_nothing(const Node& node, int64_t k, const TensorMap& tensors) {
  const c10::AutoGradMode no_grad(false);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : node.op()->schema().arguments()) {
    const Argument* operand = node.try_input(argument.name());
    if (argument.name() == "x") {
      stack.emplace_back(at::empty({0, k}, at::kFloat));
    } else if (argument.name() == "bias" || (operand != nullptr && operand->is_none())) {
      stack.emplace_back();
    } else if (operand == nullptr) {
      stack.push_back(argument.default_value().value());
    } else if (const auto name = try_tensor_name(*operand)) {
      stack.emplace_back(tensors.at(*name));
    } else {
      stack.push_back(constant_to_ivalue(*operand, argument.type()));
    }
  }
  node.op()->callBoxed(stack);
}

std::vector<std::string> layouts_of(const std::vector<at::Tensor>& parts) {
  std::vector<std::string> layouts;
  for (const PackedBlock& block : packed_of(parts)) layouts.push_back(block.layout);
  return layouts;
}

/// The blocks of each weight.
class BlocksByParts {
 public:
  explicit BlocksByParts(const std::vector<PackedRecord>& packed) {
    for (const PackedRecord& record : packed) blocks_[record.parts].push_back(&record);
  }
  std::vector<const PackedRecord*> of(const Packable& weight) const {
    const auto found = blocks_.find(weight.names);
    return found == blocks_.end() ? std::vector<const PackedRecord*>{} : found->second;
  }

 private:
  std::map<std::vector<std::string>, std::vector<const PackedRecord*>> blocks_;
};

/// Offers the blocks and makes the kernels ask for them, which compares them with the weight. The layouts.
std::vector<std::string> adopt_and_check(const Packable& weight,
                                         const std::vector<const PackedRecord*>& blocks,
                                         TensorRestorer& restorer, PackedTrust trust) {
  std::vector<std::string> offered;
  try {
    for (const PackedRecord* record : blocks) {
      if (std::find(offered.begin(), offered.end(), record->layout) != offered.end())
        fail(ErrorCode::kCorruptFile, "two packed blocks have the layout {}", quote_text(record->layout));
      adopt_packed(weight.parts, {record->layout, restorer.restore(record->block)}, trust);
      offered.push_back(record->layout);
    }
    if (!offered.empty()) weight.pack();
  } catch (const Error& error) {
    for (const at::Tensor& part : weight.parts) forget_packed(part);
    throw error.with_context(quote_text(weight.layer));
  }
  return offered;
}

}  // namespace

nlohmann::json packed_json(const std::vector<PackedRecord>& packed) {
  nlohmann::json json = nlohmann::json::array();
  for (const PackedRecord& record : packed) {
    json.push_back({{"parts", ht::texts_json(record.parts)},
                    {"layout", ht::text_json(record.layout)},
                    {"block", record_json(record.block)}});
  }
  return json;
}

std::vector<PackedRecord> read_packed(const HtMetadata& metadata) {
  std::vector<PackedRecord> packed;
  if (!metadata.has(ht::kPackedKey)) return packed;
  const nlohmann::json document = metadata.json(ht::kPackedKey);
  for (const JsonCursor& item : ht::elements(JsonCursor(document, metadata.place(ht::kPackedKey)))) {
    ht::require_known(item, {"parts", "layout", "block"});
    packed.push_back(
        {ht::texts_of(item.at("parts")), ht::text_of(item.at("layout")), record_of(item.at("block"))});
    if (packed.back().parts.empty()) item.fail_here("a block of no parts");
  }
  return packed;
}

std::vector<Packable> packable_weights(const Graph& graph, const TensorMap& tensors) {
  std::vector<Packable> weights;
  std::set<std::vector<std::string>> seen;
  for (const auto& node : graph.nodes()) {
    // A config of the user's own packs, if at all, where only its owner knows.
    if (node->op() == nullptr || node->is("halftone::custom_linear")) continue;
    if (const auto name = static_int8::try_product_weight(*node)) {
      if (!tensors.contains(*name) || !seen.insert({*name}).second) continue;
      weights.push_back({layer_of_tensor(*name), {*name}, {tensors.at(*name)}, [&node = *node, &tensors] {
                           static_int8::pack_product(node, tensors);
                         }});
      continue;
    }
    const auto quantized = try_quantized_node(*node);
    if (!quantized || quantized->layer.kind != "linear") continue;
    const auto names = try_part_names(*node);
    if (!names || names->empty() || !seen.insert(*names).second) continue;
    Packable weight{quantized->layer.name, *names, {}, nullptr};
    for (const std::string& name : *names) weight.parts.push_back(tensors.at(name));
    weight.pack = [&node = *node, k = quantized->layer.k, &tensors] { call_on_nothing(node, k, tensors); };
    weights.push_back(std::move(weight));
  }
  return weights;
}

Packable packable(const std::string& name, const QuantizedWeight& weight) {
  Packable result{name, {}, {}, nullptr};
  for (const auto& [part, tensor] : weight.parts) {
    result.names.push_back(part_name(name, part));
    result.parts.push_back(tensor);
  }
  result.pack = [&weight] {
    const c10::AutoGradMode no_grad(false);
    weight.format->linear(at::empty({0, weight.sizes[1]}, at::kFloat), weight, std::nullopt);
  };
  return result;
}

std::vector<PackedRecord> add_packed(const std::vector<Packable>& weights, TensorCollector& collector) {
  std::vector<PackedRecord> packed;
  for (const Packable& weight : weights) {
    weight.pack();
    for (const PackedBlock& block : packed_of(weight.parts)) {
      collector.add(fmt::format("{} as {}", weight.layer, block.layout), block.bytes,
                    fmt::format("{}packed", ht::kReserved));
      packed.push_back({weight.names, block.layout, {}});
    }
  }
  return packed;
}

std::vector<std::string> adopt_blocks(const std::vector<Packable>& weights,
                                      const std::vector<PackedRecord>& packed, TensorRestorer& restorer) {
  std::vector<std::string> notes;
  const BlocksByParts blocks(packed);
  for (const Packable& weight : weights) {
    const std::vector<std::string> offered =
        adopt_and_check(weight, blocks.of(weight), restorer, PackedTrust::kCheck);
    if (offered.empty()) continue;
    for (const std::string& layout : layouts_of(weight.parts)) {
      if (std::find(offered.begin(), offered.end(), layout) != offered.end()) continue;
      notes.push_back(bounded_message(fmt::format("{}: packed for {} in the file, repacked for {}",
                                                  weight.layer, fmt::join(offered, ", "), layout)));
    }
  }
  return notes;
}

std::vector<std::string> block_findings(const std::vector<Packable>& weights,
                                        const std::vector<PackedRecord>& packed, TensorRestorer& restorer) {
  std::vector<std::string> findings;
  const BlocksByParts blocks(packed);
  for (const Packable& weight : weights) {
    try {
      adopt_and_check(weight, blocks.of(weight), restorer, PackedTrust::kCompare);
    } catch (const Error& error) {
      findings.emplace_back(error.what());
    } catch (const c10::Error& error) {
      findings.push_back(fmt::format("{}: {}", quote_text(weight.layer), error.what_without_backtrace()));
    }
  }
  return findings;
}

}  // namespace halftone
