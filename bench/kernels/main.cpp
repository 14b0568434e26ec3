// kernels_bench: our kernels beside the machine's limits and, where built with torch, beside what a user has
// today.
//
//   kernels_bench [--suite=linear|attention] [--threads=1,2] [--m=1,32,…] [--shapes=NxK,…] [--json=FILE]
//                 [--rounds=7] [--benchmark_…]
//
// Method: in each case every candidate first gives its answer, which is checked. Then there are rounds: in
// each, Google Benchmark runs all of them in a random order, at least 20 ms each. Ratios are those of one
// round, their median over the rounds is shown, so that a drift of the machine cancels out; times are the
// median of all calls. A host may give several threads one core for a while: a round beside which the
// threads together were much slower than they can be is dropped and run again (rounds.h). Weights rotate. The
// share of the memory's bandwidth is such a ratio, too: to plain reads (reads.h), which are a candidate. One
// thread is timed by its processor time (clock.h). Google Benchmark's own options work:
// --benchmark_min_time, and --benchmark_filter, which sees "candidate/MxNxK/threads".
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "candidate.h"
#include "cpu/isa.h"
#include "halftone/base/error.h"
#include "kernels/peaks/clock.h"
#include "kernels/peaks/peaks.h"
#include "reads.h"
#include "report.h"
#include "rounds.h"

namespace halftone::bench {

using kernels::larger;
using kernels::measure_peaks;
using kernels::seconds;
namespace {

struct Options {
  Suite suite = Suite::kLinear;
  std::vector<int64_t> threads = {1, 2};
  std::vector<int64_t> m;
  std::vector<std::pair<int64_t, int64_t>> shapes;  // (n, k); attention takes only k, the size of a head
  std::string json;
  int rounds = 7;
};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "kernels_bench: bad argument " + what);
}

std::vector<int64_t> numbers(const std::string& list) {
  std::vector<int64_t> all;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    all.push_back(std::atol(item.c_str()));
    if (all.back() <= 0) refuse(list);
  }
  return all;
}

Options parse(int argc, char** argv) {
  Options o;
  std::string suite = "linear";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equal = argument.find('=');
    const std::string name = argument.substr(0, equal);
    const std::string value = equal == std::string::npos ? "" : argument.substr(equal + 1);
    if (name == "--suite" && (value == "linear" || value == "attention")) {
      suite = value;
    } else if (name == "--threads") {
      o.threads = numbers(value);
    } else if (name == "--m") {
      o.m = numbers(value);
    } else if (name == "--rounds") {
      o.rounds = static_cast<int>(numbers(value).front());
    } else if (name == "--json") {
      o.json = value;
    } else if (name == "--shapes") {
      std::stringstream stream(value);
      for (std::string item; std::getline(stream, item, ',');) {
        std::pair<int64_t, int64_t> nk;
        if (std::sscanf(item.c_str(), "%ldx%ld", &nk.first, &nk.second) != 2) refuse(argument);
        o.shapes.push_back(nk);
      }
    } else {
      refuse(argument);
    }
  }
  const bool linear = suite == "linear";
  o.suite = linear ? Suite::kLinear : Suite::kAttention;
  if (o.m.empty() && linear) o.m = {1, 4, 8, 32, 128, 512};
  if (o.m.empty()) o.m = {8, 16, 32, 64, 128, 256, 512, 1024, 2048};
  if (o.shapes.empty() && linear)
    o.shapes = {{384, 384}, {1536, 384}, {384, 1536}, {1024, 1024}, {4096, 4096}, {11008, 4096}};
  if (o.shapes.empty()) o.shapes = {{0, 64}};
  return o;
}

/// Google Benchmark only runs; Report prints.
class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

void register_candidate(const Case& c, const Candidate& candidate, Sample& sample) {
  char name[160];
  std::snprintf(name, sizeof(name), "%s/%ldx%ldx%ld/%d", candidate.label.c_str(), c.shape.m, c.shape.n,
                c.shape.k, c.threads);
  benchmark::RegisterBenchmark(name, [&candidate, &sample, threads = c.threads](benchmark::State& state) {
    for (auto _ : state) {
      const double start = seconds(threads);
      candidate.run(static_cast<int>(sample.seconds.size()));
      sample.seconds.push_back(seconds(threads) - start);
      state.SetIterationTime(std::max(sample.seconds.back(), 1e-9));
    }
  })->UseManualTime();
}

void check_answers(const std::vector<Candidate>& candidates, std::vector<Sample>& samples) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    samples[i].error = c.error();
    if (c.bound > 0 && !(samples[i].error <= c.bound)) {
      throw Error(ErrorCode::kInternal, c.kernel + " is wrong: error " + std::to_string(samples[i].error));
    }
  }
}

// Google Benchmark shuffles the order of what is registered.
void run_case(const Case& c, ParallelFor& parallel_for, const Peaks& peaks, int rounds, Report& report) {
  std::vector<Candidate> candidates = our_candidates(c, parallel_for);
  candidates.push_back(reads_candidate(parallel_for));
  for (Candidate& peer : peer_candidates(c)) candidates.push_back(std::move(peer));
  std::vector<Sample> samples(candidates.size());
  check_answers(candidates, samples);
  for (size_t i = 0; i < candidates.size(); ++i) register_candidate(c, candidates[i], samples[i]);
  const Rounds done = run_rounds(parallel_for, peaks, rounds, samples, [] {
    Silent silent;
    benchmark::RunSpecifiedBenchmarks(&silent);
  });
  benchmark::ClearRegisteredBenchmarks();
  if (done.too_busy()) return report.refuse(c, done.dropped, done.kept + done.dropped);
  report.add(c, candidates, samples, peaks, done.dropped);
}

void print_peaks(int64_t threads, const Peaks& peaks) {
  std::printf(
      "\n%s, threads %ld: reads %.1f GB/s; multiply-adds: saturating chain %.1f, exact 8-bit %.1f, "
      "fp32 %.1f G/s\n",
      std::string(to_string(active_isa())).c_str(), threads, peaks.read_gbs, peaks.chain_gmac,
      peaks.exact8_gmac, peaks.fma_gmac);
}

int run(int argc, char** argv) {
  // Defaults first: what the user says later wins.
  std::vector<char*> arguments(argv, argv + argc);
  char interleave[] = "--benchmark_enable_random_interleaving=true", least[] = "--benchmark_min_time=0.02";
  arguments.insert(arguments.begin() + 1, {interleave, least});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  const Options o = parse(count, arguments.data());
  Report report;
  for (int64_t threads : o.threads) {
    const std::unique_ptr<ParallelFor> parallel_for = make_parallel_for(static_cast<int>(threads));
    Peaks peaks = measure_peaks(*parallel_for, 10);
    print_peaks(threads, peaks);
    for (const auto& [n, k] : o.shapes) {
      for (int64_t m : o.m) {
        peaks = larger(peaks, measure_peaks(*parallel_for, 1));  // a neighbour may have lowered the first
        const Shape shape{m, o.suite == Suite::kLinear ? n : m, k};
        run_case({o.suite, shape, static_cast<int>(threads)}, *parallel_for, peaks, o.rounds, report);
      }
    }
    report.set_peaks(static_cast<int>(threads), peaks);
  }
  if (!o.json.empty()) report.write_json(o.json);
  if (report.refused() == 0) return 0;
  std::fprintf(stderr, "this machine is too busy to say: %d of the cases were not measured\n",
               report.refused());
  return 1;
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
