// Geometric means of results.
#include <cmath>
#include <map>
#include <tuple>

#include "halftone/bench/results.h"

namespace halftone {
namespace {

/// Logarithms summed up: products of many ratios would overflow.
class LogMean {
 public:
  void add(double ratio) {
    sum_ += std::log(ratio);
    ++count_;
  }
  int64_t count() const { return count_; }
  std::optional<double> value() const {
    if (count_ == 0) return std::nullopt;
    return std::exp(sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

struct Group {
  LogMean speedup;
  LogMean compression;
  int64_t left_out = 0;
};

bool is_ratio(const std::optional<double>& value) {
  return value && std::isfinite(*value) && *value > 0;
}

}  // namespace

std::vector<BenchMean> geometric_means(std::span<const BenchRow> rows) {
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  for (const BenchRow& row : rows) {
    Group& group = groups[{row.mode, row.scheme, row.backend}];
    // A wrong answer that comes fast is no speed-up.
    if (!accuracy_holds(row.accuracy) || !is_ratio(row.speedup)) {
      ++group.left_out;
      continue;
    }
    group.speedup.add(*row.speedup);
    if (is_ratio(row.compression_ratio)) group.compression.add(*row.compression_ratio);
  }
  std::vector<BenchMean> means;
  for (const auto& [key, group] : groups) {
    const auto& [mode, scheme, backend] = key;
    means.push_back({mode, scheme, backend, group.speedup.count(), group.left_out, group.speedup.value(),
                     group.compression.value()});
  }
  return means;
}

}  // namespace halftone
