// Medians, quantiles and intervals from order statistics.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/tune/measure.h"

namespace halftone {
namespace {

// Up to here 2^-n and its neighbours are ordinary doubles, and the sum below is exact enough and cheap.
constexpr size_t kExactUpTo = 500;

/// How many standard deviations around the mean hold `level` of a normal distribution.
double normal_reach(double level) {
  double low = 0;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(2.0)) < level ? low : high) = middle;
  }
  return low;
}

/// The largest i for which the i-th smallest and the i-th largest of n values hold their population's median
/// between them with probability `level`; 0 if there is none.
size_t interval_rank(size_t n, double level) {
  const double allowed = (1 - level) / 2;
  if (n > kExactUpTo) {
    const double count = static_cast<double>(n);
    return static_cast<size_t>(std::max(0.0, (count - normal_reach(level) * std::sqrt(count)) / 2));
  }
  double term = std::pow(0.5, static_cast<double>(n));  // P(B = 0)
  double sum = 0;                                       // P(B < rank)
  size_t rank = 0;
  while (rank < n / 2 + n % 2 && sum + term <= allowed) {
    sum += term;
    term *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
    ++rank;
  }
  return rank;
}

/// Round by round, of the rounds that both ran.
std::vector<double> ratios_of(const MeasuredTime& a, const MeasuredTime& b) {
  std::vector<double> ratios(std::min(a.times.size(), b.times.size()));
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = a.times[i] / b.times[i];
  return ratios;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  const auto rank = static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

Interval median_interval(std::vector<double> values, double level) {
  const size_t rank = interval_rank(values.size(), level);
  if (rank == 0) return {0, std::numeric_limits<double>::infinity()};
  std::sort(values.begin(), values.end());
  return {values[rank - 1], values[values.size() - rank]};
}

double paired_ratio(const MeasuredTime& a, const MeasuredTime& b) {
  std::vector<double> ratios = ratios_of(a, b);
  return ratios.empty() ? 0 : quantile(std::move(ratios), 0.5);
}

Interval paired_interval(const MeasuredTime& a, const MeasuredTime& b, double level) {
  return median_interval(ratios_of(a, b), level);
}

}  // namespace halftone
