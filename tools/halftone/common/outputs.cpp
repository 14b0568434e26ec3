#include "common/outputs.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/console.h"
#include "common/describe.h"
#include "halftone/base/error.h"
#include "halftone/cli/table.h"
#include "halftone/graph/tensor_file.h"

namespace halftone::cli {

namespace {

constexpr std::string_view kMutated = "mutated_input_";

std::string_view kind_of(const c10::IValue& value) {
  if (value.isTensor()) return "tensor";
  if (value.isInt()) return "int";
  if (value.isDouble()) return "float";
  if (value.isBool()) return "bool";
  if (value.isString()) return "string";
  if (value.isNone()) return "none";
  throw Error(ErrorCode::kInternal,
              fmt::format("a result of type {} has no place in a file", value.tagKind()));
}

/// Of the finite elements; the others are counted.
struct Statistics {
  double min = 0, mean = 0, max = 0;
};

std::optional<Statistics> statistics_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_complex()) return std::nullopt;
  at::Tensor numbers = tensor.to(at::kDouble).flatten();
  if (const at::Tensor finite = at::isfinite(numbers); !finite.all().item<bool>())
    numbers = numbers.masked_select(finite);
  if (numbers.numel() == 0) return std::nullopt;
  return Statistics{numbers.min().item().toDouble(), numbers.mean().item().toDouble(),
                    numbers.max().item().toDouble()};
}

struct NotFinite {
  int64_t nan = 0, infinite = 0, elements = 0;
};

NotFinite count_not_finite(const c10::IValue& value) {
  const at::Tensor tensor = tensor_of(value);
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) return {};
  const int64_t nan = at::isnan(tensor).sum().item<int64_t>();
  const int64_t finite = at::isfinite(tensor).sum().item<int64_t>();
  return {nan, tensor.numel() - finite - nan, tensor.numel()};
}

std::string structure_of(const std::vector<Output>& outputs) {
  auto leaves = nlohmann::ordered_json::array();
  for (const Output& output : outputs) {
    if (output.name.starts_with(kMutated)) continue;
    nlohmann::ordered_json leaf = {
        {"name", output.name}, {"path", output.path}, {"kind", kind_of(output.value)}};
    if (output.value.isString()) leaf["value"] = output.value.toStringRef();
    leaves.push_back(std::move(leaf));
  }
  return leaves.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string describe_scalar(const c10::IValue& value) {
  if (value.isInt()) return fmt::to_string(value.toInt());
  if (value.isDouble()) return fmt::format("{:.6g}", value.toDouble());
  if (value.isBool()) return value.toBool() ? "True" : "False";
  return value.isString() ? value.toStringRef() : "None";
}

Row table_row(const Output& output) {
  const std::string place = output.path.empty() ? "-" : output.path;
  const at::Tensor tensor = tensor_of(output.value);
  if (!output.value.isTensor()) {
    return {output.name, place, std::string(kind_of(output.value)), describe_scalar(output.value), "-",
            "-",         "-"};
  }
  Row row = {output.name, place, dtype_name(tensor.scalar_type()), describe_sizes(tensor.sizes()), "-",
             "-",         "-"};
  if (const auto numbers = statistics_of(tensor)) {
    row[4] = fmt::format("{:.6g}", numbers->min);
    row[5] = fmt::format("{:.6g}", numbers->mean);
    row[6] = fmt::format("{:.6g}", numbers->max);
  }
  return row;
}

}  // namespace

at::Tensor tensor_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isInt()) return at::scalar_tensor(value.toInt(), at::kLong);
  if (value.isDouble()) return at::scalar_tensor(value.toDouble(), at::kDouble);
  if (value.isBool()) return at::scalar_tensor(value.toBool(), at::kBool);
  return {};
}

std::vector<Output> name_outputs(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                                 std::vector<c10::IValue> results) {
  const std::vector<std::string> paths = module.call_spec().result.leaf_paths();
  if (paths.size() != results.size()) {
    throw Error(ErrorCode::kInternal, fmt::format("{}: the call gave {} results, its description has {}",
                                                  module.name, results.size(), paths.size()));
  }
  std::vector<Output> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    outputs.push_back({fmt::format("output_{}", i), paths[i], std::move(results[i])});
  }
  const std::vector<std::string> names = module.input_names();
  for (const std::string& mutated : module.mutated_input_names()) {
    const size_t index = std::find(names.begin(), names.end(), mutated) - names.begin();
    outputs.push_back({fmt::format("{}{}", kMutated, mutated), "", inputs.at(index)});
  }
  return outputs;
}

void save_outputs(const std::string& path, const std::vector<Output>& outputs) {
  TensorMap tensors;
  for (const Output& output : outputs) {
    at::Tensor tensor = tensor_of(output.value);
    if (tensor.defined()) tensors.emplace(output.name, std::move(tensor));
  }
  save_tensors(path, tensors, {{"structure", structure_of(outputs)}});
}

std::string outputs_table(const std::vector<Output>& outputs) {
  const std::vector<Column> columns = {{"output", Align::kLeft, Cut::kMiddle, 10},
                                       {"path", Align::kLeft, Cut::kMiddle, 24},
                                       {"type"},
                                       {"shape or value", Align::kLeft, Cut::kMiddle, 16},
                                       {"min", Align::kRight},
                                       {"mean", Align::kRight},
                                       {"max", Align::kRight}};
  std::vector<Row> rows;
  rows.reserve(outputs.size());
  for (const Output& output : outputs) rows.push_back(table_row(output));
  std::string text = render_table(columns, rows, kColumns);
  for (const Output& output : outputs) {
    const NotFinite count = count_not_finite(output.value);
    if (count.nan + count.infinite == 0) continue;
    text += fmt::format(
        "{}: {} of {} elements are NaN, {} infinite; minimum, mean and maximum are of the others\n",
        output.name, count.nan, count.elements, count.infinite);
  }
  return text;
}

nlohmann::ordered_json outputs_json(const std::vector<Output>& outputs) {
  auto list = nlohmann::ordered_json::array();
  for (const Output& output : outputs) {
    nlohmann::ordered_json entry = {
        {"name", output.name}, {"path", output.path}, {"kind", kind_of(output.value)}};
    const at::Tensor tensor = tensor_of(output.value);
    if (output.value.isString()) entry["value"] = output.value.toStringRef();
    if (output.value.isInt()) entry["value"] = output.value.toInt();
    if (output.value.isDouble()) entry["value"] = output.value.toDouble();
    if (output.value.isBool()) entry["value"] = output.value.toBool();
    if (output.value.isTensor()) {
      entry["dtype"] = dtype_name(tensor.scalar_type());
      entry["shape"] = tensor.sizes().vec();
      if (const NotFinite count = count_not_finite(output.value); count.elements > 0) {
        entry["nan"] = count.nan;
        entry["infinite"] = count.infinite;
      }
      if (const auto numbers = statistics_of(tensor)) {
        entry["min"] = numbers->min;
        entry["mean"] = numbers->mean;
        entry["max"] = numbers->max;
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace halftone::cli
