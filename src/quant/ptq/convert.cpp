// convert(): the prepared model as a reference graph with explicit quantize and dequantize nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <unordered_map>

#include "base/errors.h"
#include "graph/ir/text_names.h"
#include "graph/rewrite/edit.h"
#include "graph/rewrite/unused_inputs.h"
#include "graph/run/mutation.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/decide.h"
#include "quant/ptq/point_inserter.h"
#include "quant/ptq/ptq_state.h"
#include "quant/ptq/quantize_weight.h"

namespace halftone {
namespace ptq {
namespace {

/// Carries a state out on a copy of the prepared model.
class Converter : private PointInserter {
 public:
  Converter(const PtqState& state, const ConvertOptions& options)
      : PointInserter(state.module->clone()), state_(state), options_(options) {}

  ConvertResult run() {
    for (const PlannedMatch& match : state_.matches) report_.patterns.push_back(match.info);
    report_.folded = state_.folded;
    // Everything that can fail because of what was observed comes first.
    for (const ObservedPoint& point : state_.points) {
      if (point.observer) qparams_.emplace(*point.observer, qparams_of(point));
    }
    for (size_t i = 0; i < state_.matches.size(); ++i) {
      if (state_.matches[i].info.quantized && state_.matches[i].quantizes_weight) convert_weight(i);
    }
    insert_points(state_.points);
    remove_unused_inputs(*module_);
    graph_.erase_dead_nodes();
    list_float_operations();
    if (report_.quantized() == 0) fail(ErrorCode::kInvalidArgument, "nothing is quantized");
    lint_or_throw(graph_, "convert");
    module_->notes.push_back(fmt::format("quantized: {} patterns", report_.quantized()));
    return {module_, std::move(report_)};
  }

 private:
  QParams qparams_of(const ObservedPoint& point) const {
    const Observer& observer = *state_.observers[*point.observer];
    if (observer.config().kind != ObserverKind::kFixed && !observer.has_seen())
      fail(ErrorCode::kState, "{} was never observed: calibrate() with data that reaches it",
           describe_value(*point.value));
    const QParams found = observer.qparams();
    if (found.scale.numel() != 1)
      fail(ErrorCode::kUnsupported, "{}: activations have one scale, not one for each channel",
           describe_value(*point.value));
    return found;
  }

  Inserted insert_at(const ObservedPoint& point, Value* value, Node* before, const Source& source) override {
    Value* result = point.observer ? insert_pair(point, value, before, source)
                                   : insert_dynamic(point, value, before, source);
    return {point.observer ? result->producer()->input(0).value()->producer() : result->producer(), result};
  }

  Value* insert_pair(const ObservedPoint& point, Value* value, Node* before, const Source& source) {
    const QParams& qparams = qparams_.at(*point.observer);
    const ObserverConfig& config = state_.observers[*point.observer]->config();
    const auto scale = static_cast<double>(qparams.scale.item<float>());
    const auto zero_point = qparams.zero_point.item<int64_t>();
    const auto [least, largest] = value_range(config, options_.whole_dtype);
    const c10::ScalarType dtype = storage_type(config.dtype);
    Value* quantized = insert_before(before, "halftone::quantize_per_tensor",
                                     {{"x", value},
                                      {"scale", scale},
                                      {"zero_point", zero_point},
                                      {"quant_min", least},
                                      {"quant_max", largest},
                                      {"dtype", dtype}},
                                     value->name() + "_q", with_dtype(value->meta(), dtype), source);
    report_.values.push_back(
        {point.value->name(), layer_of_value(*point.value), false, config, qparams, point.matches});
    return insert_before(before, "halftone::dequantize_per_tensor",
                         {{"q", quantized}, {"scale", scale}, {"zero_point", zero_point}},
                         value->name() + "_dq", with_dtype(value->meta(), at::kFloat), source);
  }

  Value* insert_dynamic(const ObservedPoint& point, Value* value, Node* before, const Source& source) {
    return insert_before(before, "halftone::quantize_dequantize_dynamic",
                         {{"x", value},
                          {"dtype", storage_type(point.config.dtype)},
                          {"reduce_range", point.config.reduce_range}},
                         value->name() + "_dq", with_dtype(value->meta(), at::kFloat), source);
  }

  void convert_weight(size_t index) {
    const PlannedMatch& planned = state_.matches[index];
    Node* node = copied(*planned.match.root->root);
    const ObserverConfig& config = planned.qconfig->weight;
    const std::string name = name_of_constant(*node, "weight");
    Value*& dequantized = weights_[{name, config.to_dict()}];
    if (dequantized == nullptr) {
      const IntegerWeight weight = quantize_named(name, *node, config);
      report_.values.push_back({name, planned.info.layer, true, config, weight.qparams, {index}});
      dequantized = insert_weight(name, weight, node);
    }
    set_operand(*node, "weight", dequantized);
  }

  IntegerWeight quantize_named(const std::string& name, const Node& node,
                               const ObserverConfig& config) const {
    try {
      return quantize_stored_weight(constant_operand(*module_, node, "weight", written_), config,
                                    options_.whole_dtype);
    } catch (const Error& error) {
      throw error.with_context("weight " + name);
    }
  }

  Value* insert_weight(const std::string& name, const IntegerWeight& weight, Node* before) {
    Value* values = add_constant(*module_, name + ":values", weight.values);
    const auto meta = with_dtype(values->meta(), at::kFloat);
    if (!weight.axis)
      return insert_before(before, "halftone::dequantize_per_tensor",
                           {{"q", values},
                            {"scale", static_cast<double>(weight.qparams.scale.item<float>())},
                            {"zero_point", weight.qparams.zero_point.item<int64_t>()}},
                           values->name() + "_dq", meta, before->source());
    Value* scales = add_constant(*module_, name + ":scale", weight.qparams.scale);
    Value* zero_points = add_constant(*module_, name + ":zero_point", weight.qparams.zero_point);
    return insert_before(
        before, "halftone::dequantize_per_channel",
        {{"q", values}, {"scales", scales}, {"zero_points", zero_points}, {"axis", *weight.axis}},
        values->name() + "_dq", meta, before->source());
  }

  void list_float_operations() {
    std::unordered_map<const FusedOp*, const PlannedMatch*> owners;
    for (const PlannedMatch& match : state_.matches) {
      for (const FusedOp* fused_op : match.match.fused_ops) owners[fused_op] = &match;
    }
    for (const auto& fused_op : state_.fused_ops->fused_ops()) {
      const auto owner = owners.find(fused_op.get());
      if (owner != owners.end() && owner->second->info.quantized) continue;
      if (fused_op->nodes.back()->outputs().empty() || !state_.floats.contains(fused_op->output()->name()))
        continue;
      report_.float_operations.push_back(
          {fused_op->output()->name(), fused_op->root->target(), fused_op->layer,
           owner != owners.end() ? owner->second->info.reason : no_pattern(fused_op->names)});
    }
  }

  /// With the names that a pattern could have: a linear inside of another module is no torch.nn.Linear.
  static std::string no_pattern(const std::vector<std::string>& names) {
    return fmt::format("no pattern of the backend config takes {}", fmt::join(names, " or "));
  }

  const PtqState& state_;
  const ConvertOptions& options_;
  const std::vector<std::string> written_ = mutated_tensor_names(module_->graph());
  PtqReport report_;
  std::map<size_t, QParams> qparams_;
  std::map<std::pair<std::string, std::string>, Value*> weights_;
};

}  // namespace
}  // namespace ptq

ConvertResult convert(const PreparedModel& prepared, const ConvertOptions& options) {
  const PtqState& state = PtqAccess::state(prepared);
  try {
    return ptq::Converter(state, options).run();
  } catch (const Error& error) {
    if (state.module->name.empty()) throw;
    throw error.with_context(state.module->name);
  }
}

}  // namespace halftone
