// A user's own operator, as a shared library that `halftone run --load-library` takes.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace {

/// x * scale + 1
at::Tensor scale_plus_one(const at::Tensor& x, double scale) {
  return x.mul(scale).add(1);
}

}  // namespace

TORCH_LIBRARY(halftone_test, m) {
  m.def("scale_plus_one(Tensor x, float scale) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone_test, CPU, m) {
  m.impl("scale_plus_one", &scale_plus_one);
}
TORCH_LIBRARY_IMPL(halftone_test, Meta, m) {
  m.impl("scale_plus_one", &scale_plus_one);
}
