#include "quant/ptq/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "quant/ptq/op_names.h"

namespace halftone::ptq {
namespace {

std::string parent_of(const std::string& layer) {
  const size_t dot = layer.rfind('.');
  return dot == std::string::npos ? std::string() : layer.substr(0, dot);
}

/// A number that no setting by order has.
constexpr int64_t kNoOrder = -1;

QConfigMapping::Value qconfig_of_module(const QConfigMapping& mapping, const FusedOp& fused_op,
                                        int64_t index) {
  // Order counts within the layer around the module, all else goes by the module's own name.
  const std::string parent = parent_of(fused_op.layer);
  std::vector<std::string> types = fused_op.names;
  types.insert(types.end(), fused_op.root_names.begin(), fused_op.root_names.end());
  const auto by_order = mapping.find(parent, types, index);
  if (by_order != mapping.find(parent, types, kNoOrder)) return by_order;
  return mapping.find(fused_op.layer, types, kNoOrder);
}

QConfigMapping::Value qconfig_of_function(const QConfigMapping& mapping, const FusedOp& fused_op,
                                          int64_t index) {
  const std::string& type = fused_op.root->source().module_type;
  std::vector<std::string> types = {type, public_type_name(type)};
  types.insert(types.end(), fused_op.names.begin(), fused_op.names.end());
  return mapping.find(fused_op.layer, types, index);
}

std::string describe_dtype(const ObserverConfig& observer) {
  return fmt::format("{}{}", to_string(observer.dtype), observer.is_dynamic ? " at run time" : "");
}

/// What a bound of the backend has against an observer; "" if nothing.
std::string broken_bound(const ObserverConfig& observer, const DTypeWithConstraints& wanted) {
  if (!wanted.dtype || observer.dtype != *wanted.dtype) return {};
  if (wanted.quant_min_lower_bound && wanted.quant_max_upper_bound) {
    if (!is_quantized_dtype(observer.dtype)) return "the observer has no range of quantized values";
    const auto [least, largest] = observer.range();
    if (static_cast<double>(least) < *wanted.quant_min_lower_bound ||
        static_cast<double>(largest) > *wanted.quant_max_upper_bound)
      return fmt::format("the range [{}, {}] is not within the backend's [{}, {}]", least, largest,
                         *wanted.quant_min_lower_bound, *wanted.quant_max_upper_bound);
  }
  if (wanted.scale_min_lower_bound) {
    if (observer.kind == ObserverKind::kFixed) return "the observer has no least scale";
    if (observer.eps < *wanted.scale_min_lower_bound)
      return fmt::format("the least scale {} is below the backend's {}", observer.eps,
                         *wanted.scale_min_lower_bound);
  }
  if (wanted.scale_exact_match && wanted.zero_point_exact_match) {
    if (observer.kind != ObserverKind::kFixed)
      return fmt::format("it needs a FixedQParamsObserver, not a {}", to_string(observer.kind));
    if (observer.scale != *wanted.scale_exact_match || observer.zero_point != *wanted.zero_point_exact_match)
      return fmt::format("fixed to scale {} and zero point {}, but the backend's are {} and {}",
                         observer.scale, observer.zero_point, *wanted.scale_exact_match,
                         *wanted.zero_point_exact_match);
  }
  return {};
}

bool has_half_bias(const QConfig& qconfig) {
  return qconfig.activation.dtype == ConfigDType::kFloat16 && qconfig.weight.dtype == ConfigDType::kFloat16 &&
         !qconfig.activation.is_dynamic;
}

std::string reason_against_dtypes(const DTypeConfig& wanted, const QConfig& qconfig, bool weighted) {
  const ObserverConfig& activation = qconfig.activation;
  // What is quantized at run time comes out as floats.
  const ConfigDType output = activation.is_dynamic ? ConfigDType::kFloat32 : activation.dtype;
  const bool input_fits = !wanted.input.dtype || (*wanted.input.dtype == activation.dtype &&
                                                  wanted.is_dynamic.value_or(false) == activation.is_dynamic);
  if (!input_fits || (wanted.output.dtype && *wanted.output.dtype != output))
    return fmt::format("no dtype config takes activations of {}", describe_dtype(activation));
  if (const std::string broken = broken_bound(activation, wanted.input); !broken.empty()) return broken;
  if (const std::string broken = broken_bound(activation, wanted.output); !broken.empty()) return broken;
  if (!weighted) return {};
  if (wanted.weight.dtype && *wanted.weight.dtype != qconfig.weight.dtype)
    return fmt::format("no dtype config takes weights of {}", to_string(qconfig.weight.dtype));
  if (const std::string broken = broken_bound(qconfig.weight, wanted.weight); !broken.empty()) return broken;
  const ConfigDType bias = has_half_bias(qconfig) ? ConfigDType::kFloat16 : ConfigDType::kFloat32;
  if (wanted.bias && *wanted.bias != bias)
    return fmt::format("no dtype config takes a bias of {}", to_string(bias));
  return {};
}

}  // namespace

bool is_quantized_dtype(ConfigDType dtype) {
  switch (dtype) {
    case ConfigDType::kQUInt8:
    case ConfigDType::kQInt8:
    case ConfigDType::kQUInt4x2:
    case ConfigDType::kUInt8:
    case ConfigDType::kInt8:
      return true;
    default:
      return false;
  }
}

std::unordered_map<const FusedOp*, QConfigMapping::Value> qconfigs_of(const FusedOpGraph& fused_ops,
                                                                      const QConfigMapping& mapping) {
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  std::unordered_map<const FusedOp*, QConfigMapping::Value> found;
  for (const auto& fused_op : fused_ops.fused_ops()) {
    const Node& root = *fused_op->root;
    if (fused_op->is_module) {
      int64_t& count = seen[{parent_of(fused_op->layer), public_type_name(root.source().module_type)}];
      found[fused_op.get()] = qconfig_of_module(mapping, *fused_op, count++);
    } else {
      int64_t& count = seen[{fused_op->layer, std::string(base_name(root.target()))}];
      found[fused_op.get()] = qconfig_of_function(mapping, *fused_op, count++);
    }
  }
  return found;
}

ObservationType observation_type_of(const PatternMatch& match) {
  const auto& by_count = match.config->num_tensor_args_to_observation_type();
  const auto& args = match.root->args;
  const auto tensors = static_cast<int64_t>(args.size()) - std::count(args.begin(), args.end(), nullptr);
  const auto found = by_count.find(tensors);
  return found != by_count.end() ? found->second : match.config->observation_type();
}

std::string reason_against(const BackendPatternConfig& config, const QConfig& qconfig, bool weighted) {
  if (config.dtype_configs().empty()) return "the backend config gives no dtypes for it";
  std::string reason;
  for (const DTypeConfig& wanted : config.dtype_configs()) {
    std::string against = reason_against_dtypes(wanted, qconfig, weighted);
    if (against.empty()) return {};
    // The first config is the usual one; what it lacks says more than what the last one lacks.
    if (reason.empty()) reason = std::move(against);
  }
  return reason;
}

}  // namespace halftone::ptq
