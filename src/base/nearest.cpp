#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace halftone {
namespace {

/// Letters inserted, left out or replaced, and neighbours that changed places ("rnu" for "run") as one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> older, before, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    older = std::move(before);
    before = row;
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = before[j] + static_cast<size_t>(a[i] != b[j]);
      row[j + 1] = std::min({substituted, row[j] + 1, before[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], older[j - 1] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = name.size() / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string best = nearest_name(name, known);
  return best.empty() ? "" : " (did you mean \"" + best + "\"?)";
}

std::vector<std::string> nearest_first(std::string_view name, std::vector<std::string> known) {
  std::stable_sort(known.begin(), known.end(), [name](const std::string& a, const std::string& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  return known;
}

}  // namespace halftone
