// The report of a conversion, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "halftone/cli/message.h"
#include "halftone/ptq/ptq.h"
#include "quant/ptq/grouped_text.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

using ReportJson = qconfig::Json;

ReportJson numbers_json(const at::Tensor& values) {
  const at::Tensor doubles = values.to(at::kDouble).contiguous();
  ReportJson list = ReportJson::array();
  for (int64_t i = 0; i < doubles.numel(); ++i) list.push_back(doubles.const_data_ptr<double>()[i]);
  return list;
}

ReportJson pattern_report(const MatchedPattern& match) {
  ReportJson json{{"pattern", match.pattern},
                  {"layer", match.layer},
                  {"nodes", match.nodes},
                  {"quantized", match.quantized}};
  if (!match.reason.empty()) json["reason"] = match.reason;
  return json;
}

ReportJson value_report(const QuantizedValueInfo& value) {
  return {{"value", value.value},
          {"layer", value.layer},
          {"is_weight", value.is_weight},
          {"observer", qconfig::observer_json(value.observer)},
          {"scale", numbers_json(value.qparams.scale)},
          {"zero_point", numbers_json(value.qparams.zero_point)},
          {"patterns", value.patterns}};
}

}  // namespace

size_t PtqReport::quantized() const {
  return static_cast<size_t>(std::count_if(patterns.begin(), patterns.end(),
                                           [](const MatchedPattern& match) { return match.quantized; }));
}

std::string PtqReport::to_json() const {
  ReportJson json{{"patterns", ReportJson::array()},
                  {"values", ReportJson::array()},
                  {"float_operations", ReportJson::array()},
                  {"folded", folded}};
  for (const MatchedPattern& match : patterns) json["patterns"].push_back(pattern_report(match));
  for (const QuantizedValueInfo& value : values) json["values"].push_back(value_report(value));
  for (const FloatOperation& each : float_operations)
    json["float_operations"].push_back(
        ReportJson{{"node", each.node}, {"op", each.op}, {"layer", each.layer}, {"reason", each.reason}});
  return json.dump(1);
}

std::string PtqReport::to_text() const {
  ptq::Places by_pattern, left, by_reason;
  for (const MatchedPattern& match : patterns) {
    const std::string place = ptq::place_name(match.layer, match.nodes.back());
    if (match.quantized)
      by_pattern[match.pattern].push_back(place);
    else
      left[fmt::format("{} ({})", match.pattern, match.reason)].push_back(place);
  }
  for (const FloatOperation& each : float_operations)
    by_reason[fmt::format("{} ({})", each.op, each.reason)].push_back(ptq::place_name(each.layer, each.node));
  std::string text =
      fmt::format("{} of {} quantized", quantized(), counted(patterns.size(), "matched pattern"));
  if (!folded.empty()) text += fmt::format(", {} folded", counted(folded.size(), "batch norm"));
  text += "\n" + ptq::places_table(by_pattern);
  if (!left.empty()) text += "\nMatched, and not quantized\n" + ptq::places_table(left);
  if (!by_reason.empty())
    text += "\nNot quantized: " + counted(float_operations.size(), "operation") + "\n" +
            ptq::places_table(by_reason);
  return text;
}

}  // namespace halftone
