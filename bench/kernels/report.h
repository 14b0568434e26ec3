// The benchmark's results: a table as they come, and JSON at the end (docs/performance.md is made from it,
// and the tuner can read it).
#pragma once

#include <string>
#include <vector>

#include "candidate.h"
#include "kernels/peaks/peaks.h"

namespace halftone::bench {

using kernels::Peaks;

/// Seconds of all timed calls of one candidate, round by round: in a round every candidate has its turn.
struct Sample {
  std::vector<double> seconds;
  std::vector<size_t> ends;  ///< of each round, in `seconds`
  double error = 0;

  void end_round() { ends.push_back(seconds.size()); }
  /// Forgets what was measured after the last end of a round.
  void drop_round() { seconds.resize(ends.empty() ? 0 : ends.back()); }

  double quantile(double q) const;
  double median() const { return quantile(0.5); }
  /// Half the distance of the quartiles, relative to the median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / 2 / median(); }
  /// The median over rounds of this one's median divided by the other's. A machine that is slower in one
  /// round than in the next slows both.
  double ratio_to(const Sample& other) const;

 private:
  double round_median(size_t round) const;
};

class Report {
 public:
  /// Prints the case's rows; candidates without samples are left out.
  void add(const Case& c, const std::vector<Candidate>& candidates, const std::vector<Sample>& samples,
           const Peaks& peaks, int dropped_rounds);
  /// Says that the case was disturbed too often; it is in no table.
  void refuse(const Case& c, int disturbed, int rounds);
  int refused() const { return refused_; }
  /// Once for each number of threads: the shares in the JSON are of these.
  void set_peaks(int threads, const Peaks& peaks);
  /// Throws kIo when the file cannot be written.
  void write_json(const std::string& path) const;

 private:
  struct Row {
    Case where;
    Candidate candidate;  // without its functions
    double median, spread, least, error;
    double to_baseline, to_rival;  // Sample::ratio_to; 0 if there is no such peer
    double of_read;                // share of the bandwidth of plain reads, by the same kind of ratio
    int rounds, dropped_rounds;

    bool slower() const { return candidate.ours && to_baseline > 1.0; }
    double gmac() const { return candidate.macs / median * 1e-9; }
    // Shares of the limits; 0 if there is none.
    double of_peak(const Peaks& peaks) const;
    double of_chain(const Peaks& peaks) const;
  };
  void print_heading(const Case& c);
  static void print(const Row& row, const Peaks& peaks);
  const Peaks& peaks_for(int threads) const;

  std::vector<Row> rows_;
  std::vector<std::pair<int, Peaks>> peaks_;
  std::string heading_;
  int refused_ = 0;
};

}  // namespace halftone::bench
