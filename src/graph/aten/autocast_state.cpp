#include "graph/aten/autocast_state.h"

#include <ATen/autocast_mode.h>

#include "graph/aten/dtype_text.h"

namespace halftone {

WithoutAutocastCache::WithoutAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}
WithoutAutocastCache::~WithoutAutocastCache() {
  at::autocast::set_autocast_cache_enabled(before_);
}

std::optional<c10::ScalarType> autocast_dtype() {
  if (!at::autocast::is_autocast_enabled(c10::kCPU)) return std::nullopt;
  return at::autocast::get_autocast_dtype(c10::kCPU);
}

std::string describe_autocast(const std::optional<c10::ScalarType>& dtype) {
  return dtype ? std::string("on (") + dtype_text(*dtype) + ")" : "off";
}

}  // namespace halftone
