// bf16wo.
#include "base/errors.h"
#include "kernels/bf16_linear/bf16_linear.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/ops.h"
#include "quant/weight/pack_weights.h"

namespace halftone {
namespace {

class Bf16Format final : public WeightFormat {
 public:
  Parts quantize(const at::Tensor& weight) const override {
    at::Tensor rounded = weight.to(at::kBFloat16);
    // The largest floats round up to infinity, which would make NaN of every row of results.
    if (!rounded.isfinite().all().item<bool>()) {
      fail(ErrorCode::kInvalidArgument,
           "weights up to {:g} are too large for bfloat16, whose largest number is 3.3895e+38",
           weight.abs().max().item<float>());
    }
    return {{"weight", std::move(rounded)}};
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return weight.part("weight").to(at::kFloat);
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::bf16_linear(x, weight.part("weight"), bias);
  }

  bool has_embedding() const override { return true; }

  at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const override {
    return ops::bf16_embedding(indices, weight.part("weight"), weight.dtype);
  }

  FormatOp embedding_op(const QuantizedWeight& weight) const override {
    return {"halftone::bf16_embedding", {{"dtype", weight.dtype}}};
  }

  FormatOp linear_op(const QuantizedWeight&) const override { return {"halftone::bf16_linear", {}}; }
};

QuantConfig bf16_config(const Node&) {
  return Bf16WeightOnlyConfig{};
}

ReadyLinear bf16_ready(const LinearParts& parts, const LinearAttributes&, const LinearProblem& p) {
  const kernels::Bf16LinearProblem problem{p.m, p.n, p.k};
  const kernels::Bf16LinearKernel& kernel = kernels::choose_bf16_linear(problem);
  return {kernel.name, packed_bf16(parts[0], kernel.tile_n),
          kernels::bf16_linear_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::bf16_linear(kernel, problem, args, parallel_for);
          }};
}

}  // namespace

const LinearFormat& bf16_linear_format() {
  static const LinearFormat format{.name = "bf16",
                                   .target = "halftone::bf16_linear",
                                   .parts = {"weight"},
                                   .embedding = "halftone::bf16_embedding",
                                   .config = bf16_config,
                                   .ready = bf16_ready};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const Bf16WeightOnlyConfig&) {
  return std::make_shared<Bf16Format>();
}

}  // namespace halftone
