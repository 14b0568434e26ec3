// The benchmark's results: a table as they come, and JSON at the end (docs/performance.md is made from it,
// and the tuner can read it).
#pragma once

#include <string>
#include <vector>

#include "contender.h"
#include "kernels/peaks/peaks.h"

namespace halftone::bench {

using kernels::Peaks;

/// Seconds of all timed calls of one contender.
struct Sample {
  std::vector<double> seconds;
  double error = 0;

  double quantile(double q) const;
  double median() const { return quantile(0.5); }
  /// Half the distance of the quartiles, relative to the median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / 2 / median(); }
};

class Report {
 public:
  /// Prints the case's rows; contenders without samples are left out.
  void add(const Case& c, const std::vector<Contender>& contenders, const std::vector<Sample>& samples,
           const Peaks& peaks);
  /// Once for each number of threads: the shares in the JSON are of these.
  void set_peaks(int threads, const Peaks& peaks);
  /// Throws kIo when the file cannot be written.
  void write_json(const std::string& path) const;

 private:
  struct Row {
    Case where;
    Contender contender;  // without its functions
    double median, spread, least, error;
    double to_baseline, to_rival;  // ratios of medians; 0 where there is no such peer

    bool slower() const { return contender.ours && to_baseline > 1.0; }
    double gmac() const { return contender.macs / median * 1e-9; }
    // Shares of the limits; 0 where there is none.
    double of_peak(const Peaks& peaks) const;
    double of_chain(const Peaks& peaks) const;
    double of_read(const Peaks& peaks) const;
  };
  void print_heading(const Case& c);
  static void print(const Row& row, const Peaks& peaks);
  const Peaks& peaks_for(int threads) const;

  std::vector<Row> rows_;
  std::vector<std::pair<int, Peaks>> peaks_;
  std::string heading_;
};

}  // namespace halftone::bench
