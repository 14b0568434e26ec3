#include "compiler/ops/formats.h"

#include <algorithm>

namespace halftone {

std::span<const FusedFormat> fused_formats() {
  static const std::vector<FusedFormat> formats = [] {
    std::vector<FusedFormat> list{fp32_linear_format()};
    for (const LinearFormat* format : linear_formats())
      if (!format->name.empty()) list.push_back(*format);
    return list;
  }();
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
