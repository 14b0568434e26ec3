#include "compiler/executor/emit/emit_int8.h"

#include <map>

namespace halftone::compiler {

Emitter try_int8_emitter(std::string_view target) {
  static const std::map<std::string_view, Emitter> table = {
      {"halftone::int8_conv", emit_int8_conv},
      {"halftone::int8_static_linear", emit_int8_linear},
      {"halftone::int8_add", emit_int8_binary},
      {"halftone::int8_mul", emit_int8_binary},
      {"halftone::int8_lookup", emit_int8_lookup},
      {"halftone::quantize_per_tensor", emit_int8_quantize},
      {"halftone::dequantize_per_tensor", emit_int8_dequantize},
      {"halftone::int8_max_pool", emit_int8_channels_last},
      {"halftone::int8_avg_pool", emit_int8_channels_last},
      {"halftone::int8_adaptive_avg_pool", emit_int8_channels_last},
      {"halftone::int8_interpolate", emit_int8_channels_last},
      {"halftone::int8_cat", emit_int8_cat},
  };
  const auto found = table.find(target);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace halftone::compiler
