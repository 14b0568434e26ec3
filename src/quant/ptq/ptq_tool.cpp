// For the oracle test: ptq_tool FOLDER NAME… For each model FOLDER/NAME.pt2: prepares it with
// NAME.backend.json and NAME.qconfig.json, calibrates with the samples of NAME.data.safetensors ("0.0":
// sample 0, input 0, …), converts, and writes NAME.report.json and the outputs for the inputs "test.0", …:
// NAME.outputs.safetensors, "whole.0" (whole_dtype) and "range.0".
#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/ptq.h"

namespace {

using halftone::TensorMap;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<c10::IValue> inputs_of(const TensorMap& tensors, const std::string& sample) {
  std::vector<c10::IValue> inputs;
  for (int i = 0;; ++i) {
    const auto found = tensors.find(fmt::format("{}.{}", sample, i));
    if (found == tensors.end()) return inputs;
    inputs.emplace_back(found->second);
  }
}

void run(const std::string& base) {
  const auto module = halftone::load_pt2(base + ".pt2");
  const TensorMap data = halftone::load_tensors(base + ".data.safetensors").tensors;
  const auto config = halftone::BackendConfig::from_dict(read_text(base + ".backend.json"));
  const auto mapping = halftone::QConfigMapping::from_dict(read_text(base + ".qconfig.json"));
  auto prepared = halftone::prepare(*module, mapping, inputs_of(data, "0"), config);
  for (int i = 0; !inputs_of(data, fmt::format("{}", i)).empty(); ++i)
    prepared.calibrate(inputs_of(data, fmt::format("{}", i)));
  TensorMap outputs;
  for (const bool whole : {true, false}) {
    const auto result = halftone::convert(prepared, {.whole_dtype = whole});
    if (whole) std::ofstream(base + ".report.json") << result.report.to_json();
    halftone::Session session(result.module);
    const auto given = session.run(inputs_of(data, "test"));
    for (size_t i = 0; i < given.size(); ++i)
      outputs[fmt::format("{}.{}", whole ? "whole" : "range", i)] = given[i].toTensor().contiguous();
  }
  halftone::save_tensors(base + ".outputs.safetensors", outputs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int i = 2; i < argc; ++i) {
    try {
      run(std::string(argv[1]) + "/" + argv[i]);
    } catch (const halftone::Error& error) {
      fmt::print(stderr, "{}: {}\n", argv[i], error.what());
      return 1;
    }
  }
  return 0;
}
