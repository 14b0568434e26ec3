#include "bench/results/row_key.h"

#include <fmt/format.h>

#include "bench/results/text.h"

namespace halftone {

RowKey key_of(const BenchRow& row) {
  return {row.name, row.mode, row.scheme, row.backend, row.batch_size, row.dev};
}

std::string describe_key(const BenchRow& row) {
  std::string text = fmt::format("{}, batch {}", terminal_text(row.name, 80), row.batch_size);
  for (const std::string& part : {row.mode, row.scheme, row.backend}) {
    if (!part.empty()) text += ", " + terminal_text(part, 40);
  }
  if (row.dev != "cpu" && !row.dev.empty()) text += ", " + terminal_text(row.dev, 40);
  return text;
}

std::map<RowKey, const BenchRow*> rows_by_key(std::span<const BenchRow> rows,
                                              std::vector<const BenchRow*>& replaced) {
  std::map<RowKey, const BenchRow*> result;
  for (const BenchRow& row : rows) {
    const auto [place, is_new] = result.try_emplace(key_of(row), &row);
    if (is_new) continue;
    replaced.push_back(place->second);
    place->second = &row;
  }
  return result;
}

}  // namespace halftone
