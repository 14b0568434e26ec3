// For the oracle test: observer_tool FILE.safetensors OBSERVER_JSON… Shows the tensors to each observer in
// the order of their names and prints a line of JSON for each: {"scale": […], "zero_point": […]}.
#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "halftone/base/error.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/observer.h"

namespace {

std::vector<double> numbers(const at::Tensor& values) {
  const at::Tensor doubles = values.to(at::kDouble).contiguous();
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const halftone::TensorFile file = halftone::load_tensors(argv[1]);
    for (int i = 2; i < argc; ++i) {
      auto observer = halftone::make_observer(halftone::ObserverConfig::from_dict(argv[i]));
      for (const auto& [name, tensor] : file.tensors) {
        observer->observe(tensor);
        // Through JSON and back after every sample: nothing of the state may be lost there.
        observer = halftone::Observer::from_json(observer->to_json());
      }
      const halftone::QParams result = observer->qparams();
      fmt::print("{{\"scale\": [{}], \"zero_point\": [{}]}}\n", fmt::join(numbers(result.scale), ", "),
                 fmt::join(numbers(result.zero_point), ", "));
    }
  } catch (const halftone::Error& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
  return 0;
}
