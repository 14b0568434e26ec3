// For tests: a config whose weight format refuses every weight.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "halftone/quant/weight_format.h"

namespace halftone {

/// Takes no weight at all; the reason is "no".
class RefusingFormat final : public WeightFormat {
 public:
  std::string refuse(int64_t, int64_t) const override { return "no"; }
  Parts quantize(const at::Tensor&) const override { return {}; }
  at::Tensor dequantize(const QuantizedWeight&) const override { return {}; }
  at::Tensor linear(const at::Tensor&, const QuantizedWeight&,
                    const std::optional<at::Tensor>&) const override {
    return {};
  }
};

/// Registers the config type at the first call.
inline QuantConfig refusing_config() {
  static const bool registered = [] {
    register_config_type(
        {.type = "RefusingConfig",
         .check = [](std::string_view) {},
         .make_format = [](const QuantConfig&) { return std::make_shared<RefusingFormat>(); }});
    return true;
  }();
  static_cast<void>(registered);
  return QuantConfig::of_type("RefusingConfig");
}

}  // namespace halftone
