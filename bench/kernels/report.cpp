#include "report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cpu/isa.h"
#include "halftone/base/error.h"
#include "reads.h"

namespace halftone::bench {
namespace {

double peak_of(const Peaks& peaks, Peak peak) {
  switch (peak) {
    case Peak::kExact7:
      return peaks.exact7_gmac;
    case Peak::kExact8:
      return peaks.exact8_gmac;
    case Peak::kInt4:
      return peaks.int4_gmac;
    case Peak::kFma:
      break;
  }
  return peaks.fma_gmac;
}

double share(double rate, double limit) {
  return limit > 0 ? rate / limit : 0;
}

double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown", family, model;
  while (std::getline(file, line) && !line.empty()) {
    const std::string value = line.substr(std::min(line.size(), line.find(':') + 2));
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("cpu family")) family = value;
    if (line.starts_with("model\t")) model = value;
  }
  return name + " (family " + family + ", model " + model + ")";
}

const char* suite_name(Suite suite) {
  return suite == Suite::kLinear ? "linear" : "attention";
}

}  // namespace

double Sample::quantile(double q) const {
  return quantile_of(seconds, q);
}

double Sample::round_median(size_t round) const {
  const auto first = static_cast<std::ptrdiff_t>(round == 0 ? 0 : ends[round - 1]);
  return quantile_of({seconds.begin() + first, seconds.begin() + static_cast<std::ptrdiff_t>(ends[round])},
                     0.5);
}

double Sample::ratio_to(const Sample& other) const {
  std::vector<double> ratios;
  for (size_t round = 0; round < ends.size(); ++round)
    ratios.push_back(round_median(round) / other.round_median(round));
  return quantile_of(std::move(ratios), 0.5);
}

void Report::add(const Case& c, const std::vector<Candidate>& candidates, const std::vector<Sample>& samples,
                 const Peaks& peaks, int dropped_rounds) {
  const auto ratio = [&](const Sample& sample, const std::string& label) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].label == label && !samples[i].seconds.empty()) return sample.ratio_to(samples[i]);
    }
    return 0.0;
  };
  const auto reads =
      static_cast<size_t>(std::find_if(candidates.begin(), candidates.end(),
                                       [](const Candidate& one) { return one.label == kReads; }) -
                          candidates.begin());
  print_heading(c);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (samples[i].seconds.empty() || i == reads) continue;
    Row row{c, candidates[i]};
    row.candidate.run = nullptr;  // they own the weights
    row.candidate.error = nullptr;
    row.median = samples[i].median();
    row.spread = samples[i].spread();
    row.least = samples[i].quantile(0);
    row.error = samples[i].error;
    row.to_baseline = ratio(samples[i], kBaselines[static_cast<int>(c.suite)]);
    row.to_rival = ratio(samples[i], row.candidate.rival);
    const double read_ratio = ratio(samples[i], kReads);
    row.of_read = read_ratio > 0 ? row.candidate.bytes / candidates[reads].bytes / read_ratio : 0;
    row.rounds = static_cast<int>(samples[i].ends.size());
    row.dropped_rounds = dropped_rounds;
    print(row, peaks);
    rows_.push_back(std::move(row));
  }
  if (dropped_rounds > 0) std::printf("      %d disturbed rounds dropped\n", dropped_rounds);
  std::fflush(stdout);
}

void Report::refuse(const Case& c, int disturbed, int rounds) {
  print_heading(c);
  std::printf("%5ld too busy to say: %d of %d rounds disturbed\n", c.shape.m, disturbed, rounds);
  std::fflush(stdout);
  ++refused_;
}

void Report::print_heading(const Case& c) {
  char text[100];
  const char* format =
      c.suite == Suite::kLinear ? "N %ld, K %ld, threads %d" : "%ld heads of %ld, threads %d";
  std::snprintf(text, sizeof(text), format, c.suite == Suite::kLinear ? c.shape.n : kHeads, c.shape.k,
                c.threads);
  if (heading_ == text) return;
  heading_ = text;
  std::printf("\n%s\n    M contender            ms   +-%% GMAC/s peak%% chain read%% %s rival\n", text,
              c.suite == Suite::kLinear ? "linear" : "  sdpa");
}

double Report::Row::of_peak(const Peaks& peaks) const {
  return share(gmac(), peak_of(peaks, candidate.peak));
}

double Report::Row::of_chain(const Peaks& peaks) const {
  return candidate.peak != Peak::kFma ? share(gmac(), peaks.chain_gmac) : 0;
}

void Report::print(const Row& row, const Peaks& peaks) {
  const auto cell = [](double value, const char* format) {
    char text[16] = "-";
    if (value > 0) std::snprintf(text, sizeof(text), format, value);
    return std::string(text);
  };
  std::printf("%5ld %-16s %8.3f %5.1f %6.1f %5s %5s %5s %6s %5s%s%s\n", row.where.shape.m,
              row.candidate.label.c_str(), row.median * 1e3, row.spread * 100, row.gmac(),
              cell(row.of_peak(peaks) * 100, "%.0f").c_str(), cell(row.of_chain(peaks) * 100, "%.0f").c_str(),
              cell(row.of_read * 100, "%.0f").c_str(), cell(row.to_baseline, "%.2f").c_str(),
              cell(row.to_rival, "%.2f").c_str(), row.slower() ? "  slower than " : "",
              row.slower() ? kBaselines[static_cast<int>(row.where.suite)] : "");
}

const Peaks& Report::peaks_for(int threads) const {
  return std::find_if(peaks_.begin(), peaks_.end(), [&](const auto& p) { return p.first == threads; })
      ->second;
}

void Report::set_peaks(int threads, const Peaks& peaks) {
  peaks_.emplace_back(threads, peaks);
}

void Report::write_json(const std::string& path) const {
  nlohmann::json all;
  all["cpu"] = cpu_name();
  all["cores"] = std::thread::hardware_concurrency();
  all["isa"] = to_string(active_isa());
  for (const auto& [threads, p] : peaks_) {
    all["peaks"].push_back({{"threads", threads},
                            {"read_gbs", p.read_gbs},
                            {"chain_gmac", p.chain_gmac},
                            {"exact8_gmac", p.exact8_gmac},
                            {"int4_gmac", p.int4_gmac},
                            {"fma_gmac", p.fma_gmac}});
  }
  for (const Row& r : rows_) {
    const Peaks& peaks = peaks_for(r.where.threads);  // the largest that were seen
    all["results"].push_back({{"suite", suite_name(r.where.suite)},
                              {"m", r.where.shape.m},
                              {"n", r.where.shape.n},
                              {"k", r.where.shape.k},
                              {"threads", r.where.threads},
                              {"contender", r.candidate.label},
                              {"kernel", r.candidate.kernel},
                              {"ours", r.candidate.ours},
                              {"rival", r.candidate.rival},
                              {"median_ms", r.median * 1e3},
                              {"spread", r.spread},
                              {"least_ms", r.least * 1e3},
                              {"error", r.error},
                              {"of_peak", r.of_peak(peaks)},
                              {"of_chain", r.of_chain(peaks)},
                              {"of_read", r.of_read},
                              {"to_baseline", r.to_baseline},
                              {"to_rival", r.to_rival},
                              {"rounds", r.rounds},
                              {"dropped_rounds", r.dropped_rounds},
                              {"slower_than_baseline", r.slower()}});
  }
  std::ofstream file(path);
  file << all.dump(1) << "\n";
  if (!file.flush()) throw Error(ErrorCode::kIo, "cannot write " + path);
}

}  // namespace halftone::bench
