#include "compiler/executor/lower_int8.h"

#include <map>

namespace halftone::compiler {

Lowering try_int8_lowering(std::string_view target) {
  static const std::map<std::string_view, Lowering> table = {
      {"halftone::int8_conv", lower_int8_conv},
      {"halftone::int8_static_linear", lower_int8_linear},
      {"halftone::int8_add", lower_int8_binary},
      {"halftone::int8_mul", lower_int8_binary},
      {"halftone::int8_lookup", lower_int8_lookup},
      {"halftone::quantize_per_tensor", lower_int8_quantize},
      {"halftone::dequantize_per_tensor", lower_int8_dequantize},
      {"halftone::int8_max_pool", lower_int8_images},
      {"halftone::int8_avg_pool", lower_int8_images},
      {"halftone::int8_adaptive_avg_pool", lower_int8_images},
      {"halftone::int8_interpolate", lower_int8_images},
      {"halftone::int8_cat", lower_int8_cat},
  };
  const auto found = table.find(target);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace halftone::compiler
