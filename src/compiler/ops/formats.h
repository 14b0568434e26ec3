// The weight formats that halftone::fused_linear takes: which plain operator each stands for, and how its
// arguments are named.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "quant/weight/linear_format.h"

namespace halftone {

/// A LinearFormat that has a fused form.
using FusedFormat = LinearFormat;

std::span<const FusedFormat> fused_formats();
const FusedFormat* try_fused_format(std::string_view name);
/// By the plain operator's name; nullptr for operators that fused_linear does not stand for.
const FusedFormat* try_fused_format_of(std::string_view target);

}  // namespace halftone
