// What halftone verify says of a file that is not sound.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "halftone/base/error.h"

namespace halftone::cli {

/// kCorruptFile with all of them, if there are any.
inline void throw_findings(const std::string& path, const std::vector<std::string>& findings) {
  if (findings.empty()) return;
  throw Error(ErrorCode::kCorruptFile,
              fmt::format("{}: {} finding{}:\n{}", path, findings.size(), findings.size() == 1 ? "" : "s",
                          fmt::join(findings, "\n")));
}

}  // namespace halftone::cli
