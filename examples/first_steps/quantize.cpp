// quantize MODEL.ht OUT.ht: 8-bit weights and activations in every linear; says what became of each layer.
#include <halftone/halftone.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: quantize MODEL.ht OUT.ht\n", 2;
  const auto model = halftone::load_checkpoint(argv[1]);
  const halftone::QuantizeReport report = halftone::quantize_(*model, "int8dq");
  std::cout << report.to_text();
  halftone::save_checkpoint(*model, argv[2]);
  return report.bytes_after < report.bytes_before ? 0 : 1;
}
