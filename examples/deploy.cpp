// deploy MODEL.ht: runs a model that was built, tuned and saved elsewhere.
#include <ATen/ATen.h>
#include <halftone/backend/backend.h>
#include <halftone/checkpoint/checkpoint.h>

#include <iostream>
int main(int argc, char** argv) {
  halftone::Backend model = halftone::load(argc > 1 ? argv[1] : "model.ht");  // every byte is checked
  model.deploy();  // where it was saved from: "cpu"
  std::cout << model.infer({at::ones({2, 64})}).toTensor().sizes() << "\n";
}
