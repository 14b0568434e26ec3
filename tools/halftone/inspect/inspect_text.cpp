// The report of `halftone inspect` as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/console.h"
#include "common/describe.h"
#include "common/quantizable.h"
#include "halftone/cli/table.h"
#include "inspect/inspect_report.h"

namespace halftone::cli {

namespace {

std::string section(const std::string& title, const std::string& body) {
  return fmt::format("\n{}\n{}", title, body);
}

/// "float32 [2, 3]" as two cells.
Row split_type(const std::string& described) {
  const size_t space = described.find(' ');
  if (space == std::string::npos) return {described, "-"};
  return {described.substr(0, space), described.substr(space + 1)};
}

std::string describe_dynamic(const InputSummary& input) {
  std::vector<std::string> parts;
  for (const DynamicDimension& dimension : input.dynamic) {
    const std::string range = dimension.range ? " in " + format_range(*dimension.range) : "";
    parts.push_back(fmt::format("dim {}: {}{}", dimension.dimension, dimension.size, range));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string inputs_text(const InspectReport& report) {
  std::vector<Row> rows;
  const auto inputs = user_inputs(*report.module);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Row type = split_type(describe_value(*inputs[i]->value));
    const std::string dynamic =
        inputs[i]->fixed ? "fixed by the export" : describe_dynamic(report.summary.inputs.at(i));
    rows.push_back({inputs[i]->target, type[0], type[1], dynamic});
  }
  if (rows.empty()) return "none\n";
  return render_table({{"name", Align::kLeft, Cut::kMiddle, 24},
                       {"type"},
                       {"shape", Align::kLeft, Cut::kMiddle, 24},
                       {"dynamic", Align::kLeft, Cut::kMiddle, 40}},
                      rows, kColumns);
}

std::string outputs_text(const InspectReport& report) {
  std::vector<Row> rows;
  const Graph& graph = report.module->graph();
  size_t index = 0;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].kind != OutputKind::kUser) continue;
    const Row type = split_type(describe_result(graph.output_value(i)));
    const std::string& path = report.summary.outputs.at(index).path;
    rows.push_back({fmt::format("output_{}", index++), path.empty() ? "-" : path, type[0], type[1]});
  }
  if (rows.empty()) return "none\n";
  return render_table({{"name"},
                       {"path", Align::kLeft, Cut::kMiddle, 32},
                       {"type"},
                       {"shape", Align::kLeft, Cut::kMiddle, 32}},
                      rows, kColumns);
}

/// Without spaces, to leave more room for names.
std::string compact(std::string shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), ' '), shape.end());
  return shape.empty() ? "-" : shape;
}

std::string layers_text(const InspectReport& report) {
  std::vector<Column> columns = {
      {"layer", Align::kLeft, Cut::kName, 24},    {"op", Align::kLeft, Cut::kMiddle, 10},
      {"input", Align::kLeft, Cut::kMiddle, 14},  {"output", Align::kLeft, Cut::kMiddle, 14},
      {"parameters", Align::kRight, Cut::kNever}, {"bytes", Align::kRight, Cut::kNever}};
  if (report.times) columns.push_back({"time", Align::kRight});
  std::vector<Row> rows;
  for (const LayerSummary& layer : report.summary.layers) {
    Row row = {layer.layer.empty() ? "(no layer)" : layer.layer,
               layer.ops,
               compact(layer.input_shape),
               compact(layer.output_shape),
               layer.parameters == 0 ? "-" : with_commas(layer.parameters),
               layer.parameters == 0 ? "-" : describe_bytes(layer.parameter_bytes)};
    if (report.times) row.push_back(fmt::format("{:.1f} %", 100 * report.times->share(layer.layer)));
    rows.push_back(std::move(row));
  }
  return rows.empty() ? "none\n" : render_table(columns, rows, kColumns);
}

std::string totals_text(const InspectReport& report) {
  const ModelSummary& summary = report.summary;
  std::vector<Row> rows = {
      {"layers", with_commas(static_cast<int64_t>(summary.layers.size())), ""},
      {"nodes", with_commas(static_cast<int64_t>(summary.nodes)), ""},
      {"parameters", with_commas(summary.parameters), describe_bytes(summary.parameter_bytes)},
      {"buffers", with_commas(summary.buffers), describe_bytes(summary.buffer_bytes)},
      {"constants", with_commas(summary.constants), describe_bytes(summary.constant_bytes)}};
  if (summary.tied_parameters > 0) {
    rows.push_back(
        {"tied parameters", with_commas(static_cast<int64_t>(summary.tied_parameters)), "counted once"});
  }
  std::string text =
      render_table({{"what"}, {"count", Align::kRight}, {"bytes", Align::kRight}}, rows, kColumns);
  if (report.times) {
    text += fmt::format("Time in the layers: {:.3f} ms, median of {} runs\n", report.times->total_ms,
                        report.times->runs);
  }
  return text;
}

std::string quantizable_text(const ModelSummary& summary) {
  std::vector<Row> rows;
  for (const QuantizableKind& kind : count_quantizable(summary)) {
    const double share =
        static_cast<double>(kind.bytes) / static_cast<double>(std::max<int64_t>(summary.parameter_bytes, 1));
    rows.push_back({std::string(kind.name), with_commas(kind.layers), describe_bytes(kind.bytes),
                    fmt::format("{:.1f} %", 100 * share)});
  }
  return render_table(
      {{"kind"}, {"layers", Align::kRight}, {"bytes", Align::kRight}, {"of the parameters", Align::kRight}},
      rows, kColumns);
}

std::string notes_text(const InspectReport& report) {
  std::vector<std::string> notes = report.module->notes;
  const std::vector<std::string> mutated = report.module->mutated_input_names();
  if (!report.state.empty()) {
    notes.push_back(fmt::format("keeps state between calls in: {}", fmt::join(report.state, ", ")));
  }
  if (!mutated.empty()) notes.push_back(fmt::format("writes to its inputs: {}", fmt::join(mutated, ", ")));
  if (report.module->sample_inputs.empty() && !user_inputs(*report.module).empty()) {
    notes.push_back("has no sample inputs: run and --time need --inputs");
  }
  std::string text;
  for (const std::string& note : notes) text += wrap_text(note, kColumns);
  return text;
}

}  // namespace

std::string report_text(const InspectReport& report) {
  std::string text = fmt::format("{}: {}\n", report.path, describe_bytes(report.file_bytes));
  text += section("Inputs", inputs_text(report));
  text += section("Outputs", outputs_text(report));
  text += section("Layers", layers_text(report));
  text += section("Totals", totals_text(report));
  text += section("Could be quantized", quantizable_text(report.summary));
  const std::string notes = notes_text(report);
  return notes.empty() ? text : text + section("Notes", notes);
}

}  // namespace halftone::cli
