// bf16wo.
#include "base/errors.h"
#include "quant/weight/formats.h"
#include "quant/weight/ops.h"

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

}  // namespace

std::shared_ptr<const WeightFormat> make_format(const Bf16WeightOnlyConfig&) {
  return std::make_shared<Bf16Format>();
}

}  // namespace halftone
