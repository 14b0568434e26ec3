// The text of a progress bar.
#include "halftone/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace halftone {
namespace {

/// Names are anybody's: a control character in one must not reach the terminal, nor half a character.
std::string as_one_line(std::string line, size_t width) {
  const auto continues = [&](size_t at) { return (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U; };
  if (line.size() > width) {
    size_t end = width;
    while (end > 0 && continues(end)) --end;
    line.resize(end);
  }
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const bool is_c1 =
        byte == 0xC2U && i + 1 < line.size() && static_cast<unsigned char>(line[i + 1]) < 0xA0U;
    if (byte < 0x20U || byte == 0x7FU || is_c1) line[i] = '?';
    if (is_c1) line.erase(i + 1, 1);
  }
  return line;
}

}  // namespace

std::string render_progress(int64_t done, int64_t total, std::string_view what, int width) {
  constexpr int kBar = 30;
  total = std::max<int64_t>(total, 1);
  done = std::clamp<int64_t>(done, 0, total);
  const auto filled = static_cast<int>(kBar * done / total);
  std::string line = fmt::format("[{}{}] {:>5}/{}  {}", std::string(filled, '#'),
                                 std::string(kBar - filled, '.'), done, total, what);
  return as_one_line(std::move(line), static_cast<size_t>(std::max(width, 0)));
}

}  // namespace halftone
