// fp8wo and fp8dq.
#include "quant/weight/float8.h"
#include "quant/weight/formats.h"
#include "quant/weight/ops.h"

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

}  // namespace

std::shared_ptr<const WeightFormat> make_format(const Float8WeightOnlyConfig& config) {
  return std::make_shared<Fp8Format>(false, config.granularity);
}

std::shared_ptr<const WeightFormat> make_format(const Float8DynamicActivationFloat8WeightConfig& config) {
  return std::make_shared<Fp8Format>(true, config.granularity);
}

}  // namespace halftone
