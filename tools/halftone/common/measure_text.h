// An ErrorMeasure as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "halftone/quant/diagnose.h"

namespace halftone::cli {

/// "48.2"; "exact" if nothing differs, "NaN" if something is not finite in one only.
std::string decibels(const ErrorMeasure& measure);
/// Lines about what is not a number or infinite; none if everything is finite.
std::string not_finite_text(const ErrorMeasure& measure);
nlohmann::ordered_json measure_json(const ErrorMeasure& measure);

}  // namespace halftone::cli
