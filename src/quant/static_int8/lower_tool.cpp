// For the oracle test: lower_tool FOLDER NAME… For each model FOLDER/NAME.pt2, prepared with
// NAME.backend.json and NAME.qconfig.json and calibrated with NAME.data.safetensors as ptq_tool does: a line
// of JSON with what lower() left float, and how far the lowered graph's results are from the reference
// graph's.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/lower.h"
#include "halftone/ptq/ptq.h"

namespace {

using namespace halftone;

std::string file_content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<c10::IValue> sample_of(const TensorMap& tensors, const std::string& sample) {
  std::vector<c10::IValue> inputs;
  for (int i = 0;; ++i) {
    const auto found = tensors.find(fmt::format("{}.{}", sample, i));
    if (found == tensors.end()) return inputs;
    inputs.emplace_back(found->second);
  }
}

ConvertResult reference_graph(const std::string& base, const TensorMap& data) {
  const auto module = load_pt2(base + ".pt2");
  auto prepared =
      prepare(*module, QConfigMapping::from_dict(file_content(base + ".qconfig.json")), sample_of(data, "0"),
              BackendConfig::from_dict(file_content(base + ".backend.json")));
  for (int i = 0; !sample_of(data, fmt::format("{}", i)).empty(); ++i)
    prepared.calibrate(sample_of(data, fmt::format("{}", i)));
  return convert(prepared);
}

/// The scale of the result where it was quantized last, else a 255th of its range.
double step_of(const GraphModule& module, const at::Tensor& result) {
  const Node* last = module.graph().output_value(0).value()->producer();
  if (last != nullptr && last->is("halftone::dequantize_per_tensor"))
    return *last->try_input("scale")->get_if<double>();
  return (result.max() - result.min()).item<double>() / 255;
}

nlohmann::json examine(const std::string& base) {
  const TensorMap data = load_tensors(base + ".data.safetensors").tensors;
  const ConvertResult reference = reference_graph(base, data);
  const LowerResult lowered = lower(*reference.module);
  const std::vector<c10::IValue> inputs = sample_of(data, "test");
  const at::Tensor expected = Session(reference.module).run(inputs).at(0).toTensor();
  const at::Tensor actual = Session(lowered.module).run(inputs).at(0).toTensor();
  const at::Tensor compiled = compile(lowered.module)->run(inputs).at(0).toTensor();
  const at::Tensor steps = (actual - expected).abs() / step_of(*reference.module, expected);
  nlohmann::json json = {{"operators", lowered.report.operators},
                         {"kept", nlohmann::json::array()},
                         {"largest", steps.max().item<double>()},
                         {"differing", steps.gt(1e-3).sum().item<int64_t>()},
                         {"elements", steps.numel()},
                         {"compiled", (compiled - actual).abs().max().item<double>()},
                         {"strides", actual.strides() == expected.strides()}};
  for (const KeptInFloat& node : lowered.report.kept)
    json["kept"].push_back({{"target", node.target}, {"layer", node.layer}, {"reason", node.reason}});
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const at::NoGradGuard no_grad;
  for (int i = 2; i < argc; ++i) {
    try {
      fmt::print("{}\n", examine(std::string(argv[1]) + "/" + argv[i]).dump());
    } catch (const Error& error) {
      fmt::print(stderr, "{}: {}\n", argv[i], error.what());
      return 1;
    }
  }
  return 0;
}
