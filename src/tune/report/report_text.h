// Lines that reports and plans share.
#pragma once

#include <string>
#include <vector>

#include "halftone/tune/samples.h"

namespace halftone {

inline constexpr int kReportWidth = 100;

/// "Shapes: 1x128 (4 calls), 8x128"
std::string shapes_line(const std::vector<SampleShape>& shapes);
/// A line for each range and each of its checks; empty if there are none.
std::string ranges_text(const std::vector<SampleRange>& ranges);

}  // namespace halftone
