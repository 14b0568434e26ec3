#include "inspect/inspect_refused.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/console.h"
#include "common/describe.h"
#include "halftone/cli/summary.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

using RefusedJson = nlohmann::ordered_json;
using Tensors = std::vector<Pt2Description::Tensor>;

std::string type_of(const Pt2Description::Tensor& tensor) {
  return tensor.meta ? dtype_name(tensor.meta->dtype) : "-";
}

std::string shape_of(const Pt2Description::Tensor& tensor) {
  return tensor.meta ? format_sizes(tensor.meta->sizes) : "-";
}

std::string tensor_table(const Tensors& tensors) {
  std::vector<Row> rows;
  for (const Pt2Description::Tensor& tensor : tensors)
    rows.push_back({tensor.name, type_of(tensor), shape_of(tensor)});
  if (rows.empty()) return "none\n";
  return render_table(
      {{"name", Align::kLeft, Cut::kName, 24}, {"type"}, {"shape", Align::kLeft, Cut::kMiddle, 24}}, rows,
      kColumns);
}

RefusedJson tensor_json(const Tensors& tensors) {
  auto list = RefusedJson::array();
  for (const Pt2Description::Tensor& tensor : tensors)
    list.push_back({{"name", tensor.name}, {"dtype", type_of(tensor)}, {"shape", shape_of(tensor)}});
  return list;
}

std::string operator_table(const Pt2Description& description) {
  std::vector<Row> rows;
  for (const Pt2Description::Operator& each : description.operators)
    rows.push_back({each.layer.empty() ? "(no layer)" : each.layer, each.target, fmt::to_string(each.count)});
  return render_table({{"layer", Align::kLeft, Cut::kName, 24},
                       {"op", Align::kLeft, Cut::kMiddle, 24},
                       {"nodes", Align::kRight}},
                      rows, kColumns);
}

std::string refused_text(const Pt2Description& description) {
  std::string text;
  for (const RefusedNode& node : description.refused)
    text += wrap_text(
        fmt::format("{}: {} in layer \"{}\": {}", node.name, node.target, node.layer, node.reason), kColumns);
  return text;
}

RefusedJson report_json(const std::string& path, const Pt2Description& description) {
  RefusedJson json = {{"path", path},
                      {"runs_here", false},
                      {"inputs", tensor_json(description.inputs)},
                      {"outputs", tensor_json(description.outputs)},
                      {"tensors", tensor_json(description.tensors)},
                      {"operators", RefusedJson::array()},
                      {"refused", RefusedJson::array()}};
  for (const Pt2Description::Operator& each : description.operators)
    json["operators"].push_back({{"layer", each.layer}, {"op", each.target}, {"nodes", each.count}});
  for (const RefusedNode& node : description.refused)
    json["refused"].push_back(
        {{"name", node.name}, {"op", node.target}, {"layer", node.layer}, {"reason", node.reason}});
  return json;
}

}  // namespace

void inspect_refused(const std::string& path, const Pt2Description& description, bool json,
                     Console& console) {
  if (json)
    return console.result(
        report_json(path, description).dump(-1, ' ', false, RefusedJson::error_handler_t::replace) + "\n");
  console.result(fmt::format("{}: cannot run here, for {} of its nodes; what the file says of itself\n", path,
                             description.refused.size()));
  for (const auto& [title, body] :
       {std::pair<const char*, std::string>{"Inputs", tensor_table(description.inputs)},
        {"Outputs", tensor_table(description.outputs)},
        {"Operators", operator_table(description)},
        {"Parameters, buffers, constants", tensor_table(description.tensors)},
        {"Cannot run here", refused_text(description)}})
    console.result(fmt::format("\n{}\n{}", title, body));
}

}  // namespace halftone::cli
