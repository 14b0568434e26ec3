// kernels_bench: our kernels beside the machine's limits and, where built with torch, beside what a user has
// today.
//
//   kernels_bench [--threads 1|2|…] [--shape MxNxK]… [--seconds S] [--json]
//
// Method: in each case every contender first gives its answer, which is checked; then all contenders run in
// turn, round after round, so that noise of the machine hits them alike; the least time is printed, because
// on a shared machine it is the one that says most about the code, and the median beside it. Weights rotate.
// One thread is timed by its processor time (clock.h).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clock.h"
#include "contender.h"
#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "halftone/error.h"
#include "peaks.h"

namespace halftone::bench {
namespace {

struct Options {
  int threads = 1;
  double budget = 0.4;  ///< seconds, for each contender and case
  bool json = false;
  std::vector<Shape> shapes;
};

struct Times {
  double least = 1e9;
  std::vector<double> all;
  double median() {
    std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
};

double peak_of(const Peaks& peaks, Peak peak) {
  switch (peak) {
    case Peak::kChain:
      return peaks.chain_gmac;
    case Peak::kExact8:
      return peaks.exact8_gmac;
    case Peak::kFma:
      return peaks.fma_gmac;
    case Peak::kNone:
      break;
  }
  return 0;
}

void print_row(const Options& o, const Shape& s, const Contender& c, Times& t, const Peaks& peaks,
               double error) {
  const double gmac = static_cast<double>(s.m * s.n * s.k) / t.least * 1e-9;
  const double gbs = static_cast<double>(c.weight_bytes) / t.least * 1e-9;
  const double peak = peak_of(peaks, c.peak);
  const char* format = o.json ? "{\"m\": %ld, \"n\": %ld, \"k\": %ld, \"threads\": %d, \"name\": \"%s\", "
                                "\"ms\": %.4f, \"median_ms\": %.4f, "
                                "\"gmac\": %.1f, \"peak\": %.3f, \"read\": %.3f, \"error\": %.2e}\n"
                              : "%5ld %6ld %6ld %2d  %-42s %9.4f %9.4f %7.1f  %6.3f  %6.3f  %.1e\n";
  std::printf(format, s.m, s.n, s.k, o.threads, c.name.c_str(), t.least * 1e3, t.median() * 1e3, gmac,
              peak > 0 ? gmac / peak : 0.0, gbs / peaks.read_gbs, error);
  std::fflush(stdout);
}

void run_case(const Options& o, const Shape& s, Splitter& splitter, const Peaks& peaks) {
  std::vector<Contender> contenders = our_contenders(s, splitter);
  for (Contender& peer : peer_contenders(s, o.threads)) contenders.push_back(std::move(peer));
  std::vector<Times> times(contenders.size());
  std::vector<double> errors;
  for (Contender& c : contenders) errors.push_back(c.error());
  const double end = seconds(o.threads) + o.budget * static_cast<double>(contenders.size());
  for (int round = 0; round < 5 || seconds(o.threads) < end; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const double start = seconds(o.threads);
      contenders[i].run(round);
      const double took = seconds(o.threads) - start;
      times[i].least = std::min(times[i].least, took);
      times[i].all.push_back(took);
    }
  }
  for (size_t i = 0; i < contenders.size(); ++i) print_row(o, s, contenders[i], times[i], peaks, errors[i]);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const char* next = i + 1 < argc ? argv[i + 1] : "";
    Shape s{};
    if (std::strcmp(argv[i], "--json") == 0) {
      o.json = true;
    } else if (std::strcmp(argv[i], "--threads") == 0) {
      o.threads = std::atoi(next), ++i;
    } else if (std::strcmp(argv[i], "--seconds") == 0) {
      o.budget = std::atof(next), ++i;
    } else if (std::strcmp(argv[i], "--shape") == 0 &&
               std::sscanf(next, "%ldx%ldx%ld", &s.m, &s.n, &s.k) == 3) {
      o.shapes.push_back(s), ++i;
    } else {
      throw Error(ErrorCode::kInvalidArgument, std::string("kernels_bench: bad argument ") + argv[i]);
    }
  }
  if (o.shapes.empty()) {
    constexpr int64_t kNk[][2] = {{384, 384},   {1536, 384},  {384, 1536},
                                  {1024, 1024}, {4096, 4096}, {11008, 4096}};
    for (const auto& nk : kNk) {
      for (int64_t m : {1, 4, 8, 32, 128, 512}) o.shapes.push_back({m, nk[0], nk[1]});
    }
  }
  return o;
}

Peaks larger(const Peaks& a, const Peaks& b) {
  return {std::max(a.read_gbs, b.read_gbs), std::max(a.chain_gmac, b.chain_gmac),
          std::max(a.exact8_gmac, b.exact8_gmac), std::max(a.fma_gmac, b.fma_gmac)};
}

void print_peaks(const Options& o, const Peaks& peaks) {
  std::printf(o.json ? "{\"isa\": \"%s\", \"threads\": %d, \"read_gbs\": %.1f, \"chain_gmac\": %.1f, "
                       "\"exact8_gmac\": %.1f, \"fma_gmac\": %.1f}\n"
                     : "# isa %s, %d threads: reads %.1f GB/s; peaks: 7-bit chain %.1f, exact 8-bit %.1f, "
                       "fp32 %.1f GMAC/s\n",
              std::string(to_string(active_isa())).c_str(), o.threads, peaks.read_gbs, peaks.chain_gmac,
              peaks.exact8_gmac, peaks.fma_gmac);
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  ThreadPool pool(o.threads);
  Peaks peaks = measure_peaks(pool, 10);
  print_peaks(o, peaks);
  if (!o.json)
    std::printf(
        "#   m      n      k thr kernel                                      least ms  median  GMAC/s  /peak "
        "  /read   error\n");
  for (const Shape& s : o.shapes) {
    peaks = larger(peaks, measure_peaks(pool, 1));  // a neighbour may have lowered the first measurement
    run_case(o, s, pool, peaks);
  }
  print_peaks(o, peaks);
  return 0;
}

}  // namespace
}  // namespace halftone::bench

int main(int argc, char** argv) {
  try {
    return halftone::bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
