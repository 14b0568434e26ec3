// tune MODEL.ht OUT.ht: measures ways to run a model, takes the fastest that is right, saves it.
#include <ATen/ATen.h>
#include <halftone/halftone.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: tune MODEL.ht OUT.ht\n", 2;
  const auto model = halftone::load_checkpoint(argv[1]);
  std::vector<halftone::Sample> calls(2);
  for (auto& call : calls) call.args = {at::randn({2, 64})};
  try {
    const auto best = halftone::tune(model, calls, halftone::min_latency(), {.time_limit = 10});
    std::cout << best.report.to_text();
    halftone::save(best.backend, argv[2]);
  } catch (const halftone::Error& error) {  // for instance: this machine is too busy to say
    return std::cerr << error.what() << "\n", 1;
  }
}
