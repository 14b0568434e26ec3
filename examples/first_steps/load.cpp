// load MODEL.pt2: loads what torch.export.save wrote, and runs it on the inputs that are in the file.
#include <halftone/halftone.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: load MODEL.pt2\n", 2;
  const auto model = halftone::load_pt2(argv[1]);
  halftone::Session session(model);
  for (const auto& output : session.run(model->sample_inputs))
    if (output.isTensor()) std::cout << output.toTensor().sizes() << "\n";
}
