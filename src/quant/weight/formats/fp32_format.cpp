// aten::linear as a format: what compiled models do with weights that are not quantized.
#include "quant/weight/float_kernels.h"

namespace halftone {
namespace {

ReadyLinear fp32_ready(const LinearParts& parts, const LinearAttributes&, const LinearProblem& problem) {
  const auto floats = [&](int64_t first, int64_t count) {
    return parts[0].narrow(0, first, count).contiguous();
  };
  return ready_fp32({"fp32_linear", parts, problem.n, problem.k, floats}, problem);
}

const char* refuse_fp32(const LinearParts& parts, const LinearAttributes&) {
  return parts[0].scalar_type() != at::kFloat ? "the weight is not float32" : nullptr;
}

}  // namespace

const LinearFormat& fp32_linear_format() {
  static const LinearFormat format{.name = "fp32",
                                   .target = "aten::linear",
                                   .parts = {"weight"},
                                   .ready = fp32_ready,
                                   .refuse = refuse_fp32};
  return format;
}

}  // namespace halftone
