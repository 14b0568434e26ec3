// quantize_tensors IN.safetensors OUT.safetensors CONFIG_JSON: quantizes every tensor of a file and writes
// its parts, named "tensor.part", and what they restore to, "tensor.dequantized". For tests that compare with
// other programs.
#include <cstdio>
#include <exception>

#include "halftone/graph/tensor_file.h"
#include "halftone/quant/weight_format.h"

namespace {

void run(const char* in, const char* out, const char* config_json) {
  const halftone::QuantConfig config = halftone::QuantConfig::from_json(config_json);
  halftone::TensorMap results;
  for (const auto& [name, weight] : halftone::load_tensors(in).tensors) {
    const halftone::QuantizedWeight quantized = halftone::quantize_weight(weight, config, name);
    for (const auto& [part, tensor] : quantized.parts) results[name + "." + part] = tensor;
    results[name + ".dequantized"] = quantized.format->dequantize(quantized);
  }
  halftone::save_tensors(out, results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: quantize_tensors IN.safetensors OUT.safetensors CONFIG_JSON\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quantize_tensors: %s\n", error.what());
    return 1;
  }
  return 0;
}
