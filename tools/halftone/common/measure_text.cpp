#include "common/measure_text.h"

#include <fmt/format.h>

#include <cmath>

#include "common/console.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

std::string decibels(const ErrorMeasure& measure) {
  if (measure.is_exact()) return "exact";
  if (measure.differing_not_finite > 0) return "NaN";
  return std::isfinite(measure.snr_db) ? fmt::format("{:.1f}", measure.snr_db) : "exact";
}

std::string not_finite_text(const ErrorMeasure& measure) {
  std::string text;
  const int64_t all = measure.finite + measure.same_not_finite + measure.differing_not_finite;
  if (measure.differing_not_finite > 0)
    text += wrap_text(
        fmt::format("{} of {} elements are NaN or infinite in one of the two models and not the same "
                    "in the other: that is damage, whatever the other numbers say",
                    measure.differing_not_finite, all),
        kColumns);
  if (measure.same_not_finite > 0)
    text +=
        fmt::format("{} of {} elements are NaN or infinite in both models; the numbers are of the others\n",
                    measure.same_not_finite, all);
  return text;
}

nlohmann::ordered_json measure_json(const ErrorMeasure& measure) {
  // JSON has no infinity: null says that nothing differs.
  return {{"snr_db",
           std::isfinite(measure.snr_db) ? nlohmann::ordered_json(measure.snr_db) : nlohmann::ordered_json()},
          {"cosine", measure.cosine},
          {"max_error", measure.max_error},
          {"exact", measure.is_exact()},
          {"same_not_finite", measure.same_not_finite},
          {"differing_not_finite", measure.differing_not_finite}};
}

}  // namespace halftone::cli
