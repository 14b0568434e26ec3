// diagnose MODEL.ht: which layers lose most when they get 4-bit weights.
#include <ATen/ATen.h>
#include <halftone/halftone.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: diagnose MODEL.ht\n", 2;
  const auto model = halftone::load_checkpoint(argv[1]);
  const auto diagnosis = halftone::diagnose(*model, "int4wo", {{at::randn({4, 64})}});
  for (const auto& layer : diagnosis.layers)
    std::cout << layer.layer.name << ": " << 100 * layer.share << " % of the noise, " << layer.output.snr_db
              << " dB\n";
  std::cout << "whole model: cosine " << diagnosis.result.cosine << "\n";
  return diagnosis.layers.empty() ? 1 : 0;
}
