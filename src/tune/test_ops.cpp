// The operator that the tests' models rest with.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "halftone/capture/capture.h"

namespace {

at::Tensor nap(const at::Tensor& x, double ms) {
  // Asleep, not busy: who sleeps is not held up by what else the machine does.
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  return x.clone();
}

at::Tensor crash(const at::Tensor& x) {
  std::raise(SIGSEGV);
  return x.clone();
}

}  // namespace

TORCH_LIBRARY(halftone_tune_test, library) {
  library.def("nap(Tensor x, float ms) -> Tensor");
  library.def("crash(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone_tune_test, CPU, library) {
  library.impl("nap", &nap);
  library.impl("crash", &crash);
}

namespace {
// Models with it go through files to child processes.
[[maybe_unused]] const bool kAllowed = (halftone::allow_operators("halftone_tune_test"), true);
}  // namespace
