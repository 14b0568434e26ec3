#include "halftone/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace halftone {

std::string render_progress(int64_t done, int64_t total, std::string_view what, int width) {
  constexpr int kBar = 30;
  total = std::max<int64_t>(total, 1);
  done = std::clamp<int64_t>(done, 0, total);
  const auto filled = static_cast<int>(kBar * done / total);
  std::string line = fmt::format("[{}{}] {:>5}/{}  {}", std::string(filled, '#'),
                                 std::string(kBar - filled, '.'), done, total, what);
  if (std::cmp_greater(line.size(), std::max(width, 0))) line.resize(std::max(width, 0));
  return line;
}

}  // namespace halftone
