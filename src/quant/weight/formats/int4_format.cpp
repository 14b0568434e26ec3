// int4wo.
#include "kernels/common/int4_weights.h"
#include "quant/weight/arithmetic/affine.h"
#include "quant/weight/arithmetic/bits.h"
#include "quant/weight/float_kernels.h"
#include "quant/weight/formats/formats.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

class Int4Format final : public WeightFormat {
 public:
  explicit Int4Format(const Int4WeightOnlyConfig& config) : config_(config) {}

  std::string refuse(int64_t, int64_t) const override {
    const char* reason = kernels::refuse_int4_group(config_.group_size);
    return reason != nullptr ? reason : "";
  }

  Parts quantize(const at::Tensor& weight) const override { return quantize_typed(weight, at::kFloat); }

  Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const override {
    AffineRule rule = intx_rule(4, config_.symmetric, dtype);
    rule.search = config_.rounding == Int4Rounding::kSearch;
    const AffineParts parts = quantize_affine(weight, config_.group_size, rule);
    Parts result{{"weight", pack_bits(parts.q, 4)}, {"scale", parts.scale}};
    if (!config_.symmetric) result.emplace_back("zero_point", parts.zero_point);
    return result;
  }

  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return dequantize_affine(unpack_bits(weight.part("weight"), 4, weight.sizes[1]), weight.part("scale"),
                             zero_point_of(weight).value_or(at::Tensor()), config_.group_size);
  }

  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return ops::int4_linear(x, weight.part("weight"), weight.part("scale"), zero_point_of(weight), bias,
                            config_.group_size, quantizes_activations(), weight.sizes[1]);
  }

  bool has_embedding() const override { return true; }

  at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const override {
    return ops::int4_embedding(indices, weight.part("weight"), weight.part("scale"), zero_point_of(weight),
                               config_.group_size, weight.dtype, weight.sizes[1]);
  }

  FormatOp embedding_op(const QuantizedWeight& weight) const override {
    return with_inputs(
        {"halftone::int4_embedding", {{"group_size", config_.group_size}, {"dtype", weight.dtype}}}, weight);
  }

  FormatOp linear_op(const QuantizedWeight& weight) const override {
    return with_inputs(
        {"halftone::int4_linear",
         {{"group_size", config_.group_size}, {"quantize_activations", quantizes_activations()}}},
        weight);
  }

 private:
  /// Half a byte is left over where the number of inputs is odd: only then the operator must be told it.
  static FormatOp with_inputs(FormatOp op, const QuantizedWeight& weight) {
    if (weight.sizes[1] % 2 != 0) op.constants.push_back({"in_features", weight.sizes[1]});
    return op;
  }

  bool quantizes_activations() const { return config_.activations == Int4Activations::kInt8; }

  Int4WeightOnlyConfig config_;
};

QuantConfig int4_config(const Node& node) {
  const auto activations =
      flag_of(node, "quantize_activations") ? Int4Activations::kInt8 : Int4Activations::kFloat;
  return Int4WeightOnlyConfig{static_cast<int>(number_of(node, "group_size", 32)),
                              !is_given(node, "zero_point"), activations};
}

/// attributes: group_size, quantize_activations, …
ReadyLinear int4_ready(const LinearParts& parts, const LinearAttributes& attributes,
                       const LinearProblem& problem) {
  const auto integers = [&](int64_t first, int64_t count) {
    return unpack_bits(parts[0].narrow(0, first, count), 4, problem.k);
  };
  const int group = static_cast<int>(attributes.at(0));
  const bool dynamic = attributes.at(1) != 0;
  const at::Tensor zero_point = parts.size() > 2 ? parts[2] : at::Tensor();
  // Three parts also where there are no zero points: blocks in files are found by them.
  const PackSource source{dynamic ? "int4_dynamic_linear" : "int4_weight_only_linear",
                          {parts[0], parts[1], zero_point},
                          problem.n,
                          problem.k,
                          integers,
                          parts[1],
                          zero_point};
  return dynamic ? ready_int4_dynamic(source, group, problem)
                 : ready_int4_weight_only(source, group, problem);
}

}  // namespace

const LinearFormat& int4_linear_format() {
  static const LinearFormat format{
      .name = "int4",
      .target = "halftone::int4_linear",
      .parts = {"weight", "scale", "zero_point"},
      .required_parts = 2,
      .attributes = {"group_size", "quantize_activations", "in_features"},
      .embedding = "halftone::int4_embedding",
      .config = int4_config,
      .weights_per_column = 2,
      .ready = int4_ready,
      .multiplied_bits = [](const LinearAttributes& attributes) { return attributes.at(1) != 0 ? 7 : 0; }};
  return format;
}

std::shared_ptr<const WeightFormat> make_format(const Int4WeightOnlyConfig& config) {
  return std::make_shared<Int4Format>(config);
}

}  // namespace halftone
