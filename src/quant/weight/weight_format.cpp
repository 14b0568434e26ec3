// WeightFormat: checks and defaults that all formats share.
#include "halftone/quant/weight_format.h"

#include <ATen/ops/isfinite.h>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"

namespace halftone {
namespace {

const at::Tensor* try_part(const QuantizedWeight& weight, std::string_view name) {
  for (const auto& [part, tensor] : weight.parts) {
    if (part == name) return &tensor;
  }
  return nullptr;
}

void check_weight(const at::Tensor& weight, std::string_view layer) {
  if (!weight.defined()) fail(ErrorCode::kInvalidArgument, "{}: there is no weight", layer);
  if (weight.dim() != 2) {
    fail(ErrorCode::kInvalidArgument, "{}: a weight must have two dimensions, this one has {}", layer,
         weight.dim());
  }
  const c10::ScalarType type = weight.scalar_type();
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf && type != at::kDouble) {
    fail(ErrorCode::kInvalidArgument,
         "{}: a weight of type {} cannot be quantized; it must be floating-point", layer, dtype_text(type));
  }
  if (!weight.is_cpu())
    fail(ErrorCode::kInvalidArgument, "{}: the weight is on {}, not on the CPU", layer,
         weight.device().str());
}

// Names the first place, so that people find it.
void check_finite(const at::Tensor& weight, std::string_view layer) {
  const float* w = weight.const_data_ptr<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) {
    if (std::isfinite(w[i])) continue;
    fail(ErrorCode::kInvalidArgument,
         "{}: weight[{}][{}] is {}; weights with NaN or infinity cannot be quantized", layer,
         i / weight.size(1), i % weight.size(1), w[i]);
  }
}

}  // namespace

const at::Tensor& QuantizedWeight::part(std::string_view name) const {
  if (const at::Tensor* found = try_part(*this, name)) return *found;
  fail(ErrorCode::kNotFound, "{}: the weight has no part \"{}\"", config.describe(), name);
}

bool QuantizedWeight::has_part(std::string_view name) const {
  return try_part(*this, name) != nullptr;
}

int64_t QuantizedWeight::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : parts) sum += static_cast<int64_t>(tensor.nbytes());
  return sum;
}

QuantizedWeight WeightFormat::rows(const QuantizedWeight& weight, int64_t start, int64_t stop) const {
  const int64_t n = weight.sizes.at(0);
  if (start < 0 || start > stop || stop > n) {
    fail(ErrorCode::kInvalidArgument, "{}: rows [{}, {}) of a weight of {} rows", weight.config.describe(),
         start, stop, n);
  }
  QuantizedWeight result = weight;
  result.sizes[0] = stop - start;
  for (auto& [name, tensor] : result.parts) tensor = tensor.narrow(0, start, stop - start);
  return result;
}

at::Tensor WeightFormat::embedding(const at::Tensor&, const QuantizedWeight& weight) const {
  fail(ErrorCode::kUnsupported, "{} has no kernel for embeddings", weight.config.describe());
}

FormatOp WeightFormat::embedding_op(const QuantizedWeight& weight) const {
  fail(ErrorCode::kUnsupported, "{} has no operator for embeddings", weight.config.describe());
}

FormatOp WeightFormat::convolution_op(const QuantizedWeight& weight) const {
  fail(ErrorCode::kUnsupported, "{} has no operator for convolutions", weight.config.describe());
}

FormatOp WeightFormat::linear_op(const QuantizedWeight& weight) const {
  Argument::List names, sizes;
  for (const auto& [name, tensor] : weight.parts) names.emplace_back(name);
  for (const int64_t size : weight.sizes) sizes.emplace_back(size);
  return {"halftone::custom_linear",
          {{"config", weight.config.to_json()}, {"names", std::move(names)}, {"sizes", std::move(sizes)}}};
}

QuantizedWeight quantize_weight(const at::Tensor& weight, const QuantConfig& config, std::string_view layer) {
  auto format = format_of(config);
  check_weight(weight, layer);
  const int64_t n = weight.size(0), k = weight.size(1);
  if (const std::string reason = format->refuse(n, k); !reason.empty()) {
    fail(ErrorCode::kInvalidArgument, "{}: {} cannot take a weight of {} x {}: {}", layer, config.describe(),
         n, k, reason);
  }
  const at::Tensor floats = weight.detach().to(at::kFloat).contiguous();
  check_finite(floats, layer);
  try {
    auto parts = format->quantize_typed(floats, weight.scalar_type());
    return {config, std::move(format), {n, k}, weight.scalar_type(), std::move(parts)};
  } catch (const Error& error) {
    throw error.with_context(layer);
  }
}

}  // namespace halftone
