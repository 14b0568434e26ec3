#include "compiler/ops/formats.h"

#include <algorithm>

namespace halftone {

std::span<const FusedFormat> fused_formats() {
  static const std::vector<FusedFormat> formats = {
      {"fp32", "aten::linear", {"weight"}, 1, {}},
      {"int8_weight_only", "halftone::int8_weight_only_linear", {"weight", "scale"}, 2, {}},
      {"int8", "halftone::int8_linear", {"weight", "scale"}, 2, {"weight_bits", "symmetric_activations"}},
      {"int4",
       "halftone::int4_linear",
       {"weight", "scale", "zero_point"},
       2,
       {"group_size", "quantize_activations", "in_features"}},
      {"fp8", "halftone::fp8_linear", {"weight", "scale"}, 2, {"quantize_activations", "per_tensor"}},
      {"bf16", "halftone::bf16_linear", {"weight"}, 1, {}},
  };
  return formats;
}

namespace {

template <typename Matches>
const FusedFormat* find(Matches matches) {
  const auto formats = fused_formats();
  const auto found = std::find_if(formats.begin(), formats.end(), matches);
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace

const FusedFormat* try_fused_format(std::string_view name) {
  return find([&](const FusedFormat& format) { return format.name == name; });
}

const FusedFormat* try_fused_format_of(std::string_view target) {
  return find([&](const FusedFormat& format) { return format.target == target; });
}

}  // namespace halftone
