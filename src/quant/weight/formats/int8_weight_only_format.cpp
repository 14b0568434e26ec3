// int8wo.
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

class Int8WeightOnlyFormat final : public WeightFormat {
 public:
  Parts quantize(const at::Tensor& weight) const override { return quantize_typed(weight, at::kFloat); }

  Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const override {
    const AffineParts parts = quantize_affine(weight, weight.size(1), int8_rule(8, dtype));
    return {{"weight", parts.q}, {"scale", parts.scale.squeeze(1)}};
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_affine(weight.part("weight"), weight.part("scale"), {});
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::int8_weight_only_linear(x, weight.part("weight"), weight.part("scale"), bias);
  }

  bool has_embedding() const override { return true; }

  at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const override {
    return ops::int8_embedding(indices, weight.part("weight"), weight.part("scale"), weight.dtype);
  }

  FormatOp embedding_op(const QuantizedWeight& weight) const override {
    return {"halftone::int8_embedding", {{"dtype", weight.dtype}}};
  }

  bool has_convolution() const override { return true; }

  FormatOp convolution_op(const QuantizedWeight& weight) const override {
    return {"halftone::restore_int8_weight", {{"dtype", weight.dtype}}};
  }

  FormatOp linear_op(const QuantizedWeight&) const override {
    return {"halftone::int8_weight_only_linear", {}};
  }
};

QuantConfig int8_weight_only_config(const Node&) {
  return Int8WeightOnlyConfig{};
}

ReadyLinear int8_weight_only_ready(const LinearParts& parts, const LinearAttributes&,
                                   const LinearProblem& problem) {
  const auto integers = [&](int64_t first, int64_t count) {
    return parts[0].narrow(0, first, count).contiguous();
  };
  return ready_int8_weight_only({"int8_weight_only_linear", parts, problem.n, problem.k, integers, parts[1]},
                                problem);
}

}  // namespace

const LinearFormat& int8_weight_only_linear_format() {
  static const LinearFormat format{.name = "int8_weight_only",
                                   .target = "halftone::int8_weight_only_linear",
                                   .parts = {"weight", "scale"},
                                   .required_parts = 2,
                                   .embedding = "halftone::int8_embedding",
                                   .convolution = "halftone::restore_int8_weight",
                                   .config = int8_weight_only_config,
                                   .ready = int8_weight_only_ready};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const Int8WeightOnlyConfig&) {
  return std::make_shared<Int8WeightOnlyFormat>();
}

}  // namespace halftone
