// halftone::custom_linear: a format of the user's own in a graph, found again by its config.
#include <torch/library.h>

#include <map>
#include <mutex>

#include "base/errors.h"
#include "halftone/quant/weight_format.h"
#include "quant/weight/differentiable_linear.h"
#include "quant/weight/linear_format.h"
#include "quant/weight/meta_linear.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Names = std::vector<std::string>;
constexpr const char* kName = "halftone::custom_linear";

struct Known {
  QuantConfig config;
  std::shared_ptr<const WeightFormat> format;
};

// Parsed once: a graph calls with the same few strings again and again. Bounded, because nothing stops a
// program from making configs without end.
Known known_config(const std::string& json) {
  constexpr size_t kMax = 256;
  static std::mutex mutex;
  static auto* all = new std::map<std::string, Known>;
  const std::lock_guard lock(mutex);
  const auto found = all->find(json);
  if (found != all->end()) return found->second;
  const QuantConfig config = QuantConfig::from_json(json);
  Known known{config, format_of(config)};
  if (all->size() >= kMax) all->clear();
  all->emplace(json, known);
  return known;
}

QuantizedWeight weight_of(at::TensorList parts, const std::string& config, const Names& names,
                          at::IntArrayRef sizes) {
  if (parts.size() != names.size()) {
    fail(ErrorCode::kInvalidArgument, "{}: {} parts, but {} names", kName, parts.size(), names.size());
  }
  if (sizes.size() != 2) fail(ErrorCode::kInvalidArgument, "{}: sizes must be [n, k]", kName);
  Known known = known_config(config);
  QuantizedWeight weight{std::move(known.config), std::move(known.format), sizes.vec(), at::kFloat, {}};
  for (size_t i = 0; i < parts.size(); ++i) weight.parts.emplace_back(names[i], parts[i]);
  return weight;
}

at::Tensor cpu(const at::Tensor& x, at::TensorList parts, const OptionalTensor& bias, std::string_view config,
               Names names, at::IntArrayRef sizes) {
  const QuantizedWeight weight = weight_of(parts, std::string(config), names, sizes);
  const at::Tensor y = weight.format->linear(x, weight, bias);
  std::vector<int64_t> wanted = x.sizes().vec();
  if (!wanted.empty()) wanted.back() = sizes[0];
  if (!y.defined() || y.sizes() != at::IntArrayRef(wanted) || y.scalar_type() != x.scalar_type()) {
    fail(ErrorCode::kInvalidArgument,
         "{}: the linear of {} gave a result of another shape or type than x and sizes ask for", kName,
         weight.config.describe());
  }
  return y;
}

at::Tensor meta(const at::Tensor& x, at::TensorList parts, const OptionalTensor& bias,
                std::string_view config, Names names, at::IntArrayRef sizes) {
  if (sizes.size() != 2) fail(ErrorCode::kInvalidArgument, "{}: sizes must be [n, k]", kName);
  return meta_linear(kName, x, sizes[0], sizes[1], bias);
}

at::Tensor autograd(const at::Tensor& x, at::TensorList parts, const OptionalTensor& bias,
                    std::string_view config, Names names, at::IntArrayRef sizes) {
  return differentiable_linear(
      x, bias,
      {kName, parts.vec(),
       [&](const at::Tensor& input, const OptionalTensor& b) {
         return ops::custom_linear(input, parts, b, config, names, sizes);
       },
       [json = std::string(config), names, n_k = sizes.vec()](const std::vector<at::Tensor>& saved) {
         const QuantizedWeight weight = weight_of(saved, json, names, n_k);
         return weight.format->dequantize(weight);
       }});
}

QuantConfig config_of_node(const Node& node) {
  const Argument* config = node.try_input("config");
  const auto* json = config != nullptr ? config->get_if<std::string>() : nullptr;
  if (json == nullptr) fail(ErrorCode::kInvalidArgument, "its config is no constant string");
  return QuantConfig::from_json(*json);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "custom_linear(Tensor x, Tensor[] parts, Tensor? bias=None, *, str config, str[] names, int[] sizes) "
      "-> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("custom_linear", cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("custom_linear", meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("custom_linear", autograd);
}

}  // namespace

const LinearFormat& custom_linear_format() {
  static const LinearFormat format{.target = kName, .config = config_of_node, .weights_per_column = 0};
  return format;
}

at::Tensor ops::custom_linear(const at::Tensor& x, at::TensorList parts, const OptionalTensor& bias,
                              std::string_view config, const Names& names, at::IntArrayRef sizes) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "").typed<decltype(cpu)>();
  return op.call(x, parts, bias, config, names, sizes);
}

}  // namespace halftone
