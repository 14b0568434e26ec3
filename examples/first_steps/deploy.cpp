// deploy MODEL.ht: runs a model that was tuned and saved elsewhere.
#include <ATen/ATen.h>
#include <halftone/halftone.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: deploy MODEL.ht\n", 2;
  halftone::Backend model = halftone::load(argv[1]);  // every byte is checked
  model.deploy();
  std::cout << model.describe() << " gives " << model.infer({at::ones({2, 64})}).toTensor().sizes() << "\n";
}
