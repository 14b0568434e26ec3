// The report of `halftone inspect` as JSON.
#include <nlohmann/json.hpp>

#include "common/describe.h"
#include "common/quantizable.h"
#include "halftone/base/version.h"
#include "inspect/inspect_report.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Sizes as numbers; symbolic ones as text.
Json shape_json(const std::vector<SymExpr>& sizes) {
  Json list = Json::array();
  for (const SymExpr& size : sizes)
    list.push_back(size.as_constant() ? Json(*size.as_constant()) : Json(size.to_string()));
  return list;
}

/// "kind", and for tensors of known shape "dtype" and "shape".
Json value_json(const Argument& argument) {
  const Value* value = argument.value();
  const bool tensor = value != nullptr && value->type() == ValueType::kTensor;
  if (!tensor) return {{"kind", describe_result(argument)}};
  if (!value->meta()) return {{"kind", "tensor"}};
  return {{"kind", "tensor"},
          {"dtype", dtype_name(value->meta()->dtype)},
          {"shape", shape_json(value->meta()->sizes)}};
}

Json inputs_json(const InspectReport& report) {
  Json list = Json::array();
  const auto inputs = user_inputs(*report.module);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Json entry = {{"name", inputs[i]->target}};
    entry.update(value_json(Argument(inputs[i]->value)));
    entry["fixed"] = inputs[i]->fixed.has_value();
    entry["dynamic"] = Json::array();
    for (const DynamicDimension& dimension : report.summary.inputs.at(i).dynamic) {
      Json described = {{"dim", dimension.dimension}, {"size", dimension.size}};
      if (dimension.range) {
        described["min"] = dimension.range->min;
        described["max"] = dimension.range->max;
      }
      entry["dynamic"].push_back(std::move(described));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json outputs_of(const InspectReport& report) {
  Json list = Json::array();
  const Graph& graph = report.module->graph();
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].kind != OutputKind::kUser) continue;
    const size_t index = list.size();
    Json entry = {{"name", "output_" + std::to_string(index)},
                  {"path", report.summary.outputs.at(index).path}};
    entry.update(value_json(graph.output_value(i)));
    list.push_back(std::move(entry));
  }
  return list;
}

Json layers_json(const InspectReport& report) {
  Json list = Json::array();
  for (const LayerSummary& layer : report.summary.layers) {
    Json entry = {{"name", layer.layer},
                  {"module_type", layer.module_type},
                  {"ops", layer.ops},
                  {"input_shape", layer.input_shape},
                  {"output_shape", layer.output_shape},
                  {"parameters", layer.parameters},
                  {"parameter_bytes", layer.parameter_bytes},
                  {"nodes", layer.nodes},
                  {"quantizable", layer.quantizable}};
    if (report.times) {
      const auto found = report.times->milliseconds.find(layer.layer);
      entry["time_ms"] = found == report.times->milliseconds.end() ? 0.0 : found->second;
      entry["time_share"] = report.times->share(layer.layer);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json totals_json(const ModelSummary& summary) {
  return {{"layers", summary.layers.size()},
          {"nodes", summary.nodes},
          {"parameters", summary.parameters},
          {"parameter_bytes", summary.parameter_bytes},
          {"buffers", summary.buffers},
          {"buffer_bytes", summary.buffer_bytes},
          {"constants", summary.constants},
          {"constant_bytes", summary.constant_bytes},
          {"tied_parameters", summary.tied_parameters}};
}

}  // namespace

Json report_json(const InspectReport& report) {
  Json json = {{"model", report.path},          {"file_bytes", report.file_bytes},
               {"halftone", version()},         {"torch", torch_version()},
               {"inputs", inputs_json(report)}, {"outputs", outputs_of(report)},
               {"layers", layers_json(report)}, {"totals", totals_json(report.summary)}};
  for (const QuantizableKind& kind : count_quantizable(report.summary)) {
    json["quantizable"][std::string(kind.name)] = {{"count", kind.layers}, {"bytes", kind.bytes}};
  }
  if (report.times) json["time"] = {{"total_ms", report.times->total_ms}, {"runs", report.times->runs}};
  json["state"] = report.state;
  json["mutated_inputs"] = report.module->mutated_input_names();
  json["sample_inputs"] = !report.module->sample_inputs.empty();
  json["notes"] = report.module->notes;
  return json;
}

}  // namespace halftone::cli
