// The weight formats that halftone::fused_linear takes: which plain operator each stands for, and how its
// arguments are named.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace halftone {

struct FusedFormat {
  std::string_view name;                     ///< "int8"
  std::string_view target;                   ///< "halftone::int8_linear"
  std::vector<std::string_view> parts;       ///< argument names of the weight's parts, in order
  size_t required_parts;                     ///< those after these may be absent
  std::vector<std::string_view> attributes;  ///< argument names of the constants, in order
};

std::span<const FusedFormat> fused_formats();
const FusedFormat* try_fused_format(std::string_view name);
/// By the plain operator's name; nullptr for operators that fused_linear does not stand for.
const FusedFormat* try_fused_format_of(std::string_view target);

}  // namespace halftone
