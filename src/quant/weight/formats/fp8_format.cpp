// fp8wo and fp8dq.
#include "kernels/fp8_linear/fp8_linear.h"
#include "quant/weight/arithmetic/float8.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/ops.h"
#include "quant/weight/pack_weights.h"

namespace halftone {
namespace {

class Fp8Format final : public WeightFormat {
 public:
  Fp8Format(bool quantize_activations, Granularity granularity)
      : quantize_activations_(quantize_activations), per_tensor_(granularity == Granularity::kPerTensor) {}

  Parts quantize(const at::Tensor& weight) const override {
    Float8Parts parts = quantize_float8(weight, per_tensor_);
    return {{"weight", std::move(parts.q)}, {"scale", std::move(parts.scale)}};
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_float8(weight.part("weight"), weight.part("scale"));
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::fp8_linear(x, weight.part("weight"), weight.part("scale"), bias, quantize_activations_,
                           per_tensor_);
  }

  QuantizedWeight rows(const QuantizedWeight& weight, int64_t start, int64_t stop) const override {
    if (!per_tensor_) return WeightFormat::rows(weight, start, stop);
    QuantizedWeight only_weight = weight;
    only_weight.parts = {{"weight", weight.part("weight")}};
    QuantizedWeight result = WeightFormat::rows(only_weight, start, stop);
    result.parts.emplace_back("scale", weight.part("scale"));
    return result;
  }

  FormatOp linear_op(const QuantizedWeight&) const override {
    return {"halftone::fp8_linear",
            {{"quantize_activations", quantize_activations_}, {"per_tensor", per_tensor_}}};
  }

 private:
  bool quantize_activations_;
  bool per_tensor_;
};

QuantConfig fp8_config(const Node& node) {
  const Granularity granularity =
      flag_of(node, "per_tensor") ? Granularity::kPerTensor : Granularity::kPerRow;
  if (flag_of(node, "quantize_activations")) return Float8DynamicActivationFloat8WeightConfig{granularity};
  return Float8WeightOnlyConfig{granularity};
}

/// attributes: quantize_activations, per_tensor
ReadyLinear fp8_ready(const LinearParts& parts, const LinearAttributes& attributes, const LinearProblem& p) {
  const bool dynamic = attributes.at(0) != 0;
  const kernels::Fp8LinearProblem problem{
      p.m, p.n, p.k, dynamic ? kernels::Fp8Activations::kDynamicE4m3 : kernels::Fp8Activations::kFloat32};
  const kernels::Fp8LinearKernel& kernel = kernels::choose_fp8_linear(problem);
  return {kernel.name, packed_fp8(parts[0], parts[1], kernel.tile_n),
          kernels::fp8_linear_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, ParallelFor& parallel_for) {
            kernels::fp8_linear(kernel, problem, args, parallel_for);
          }};
}

const char* refuse_fp8(const LinearParts&, const LinearAttributes& attributes) {
  return attributes.at(0) != 0 && attributes.at(1) != 0
             ? "fp8 activations with one scale for all rows: no kernel"
             : nullptr;
}

}  // namespace

const LinearFormat& fp8_linear_format() {
  static const LinearFormat format{
      .name = "fp8",
      .target = "halftone::fp8_linear",
      .parts = {"weight", "scale"},
      .required_parts = 2,
      .attributes = {"quantize_activations", "per_tensor"},
      .config = fp8_config,
      .ready = fp8_ready,
      .refuse = refuse_fp8,
      // A scale for the whole weight would have to be the same for both.
      .may_stack = [](const LinearAttributes& attributes) { return attributes.at(1) == 0; }};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const Float8WeightOnlyConfig& config) {
  return std::make_shared<Fp8Format>(false, config.granularity);
}

std::shared_ptr<const WeightFormat> make_format(const Float8DynamicActivationFloat8WeightConfig& config) {
  return std::make_shared<Fp8Format>(true, config.granularity);
}

}  // namespace halftone
