// Where the time of a token goes: the steps of the plan that answers run, in order of time.
//
//   decoder_profile MODEL.gguf [--scheme int8dq] [--tokens 1] [--position 200] [--threads N] [--runs 50] [--rows 40] [--trace F.json]
//
// --tokens: of one call; 1 is a token of an answer, 256 a piece of a prompt. --position: tokens that the cache holds before.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "decoder/compiled_decoder.h"
#include "decoder/decoder_scheme.h"
#include "decoder/source/decoder_source.h"
#include "halftone/base/error.h"
#include "halftone/cli/table.h"
#include "halftone/compile/profile.h"

namespace {

struct Settings {
  std::string model, scheme = "int8dq", trace;
  int64_t tokens = 1, position = 200;
  int threads = 0, runs = 50;
  size_t rows = 40;
};

/// Steps of one kernel together: count, time, share, bytes a second.
std::string kernel_table(const halftone::Profile& profile, size_t max_rows) {
  struct Group {
    int count = 0;
    double seconds = 0, limit = 0;
  };
  std::map<std::string, Group> groups;
  double sum = 0;
  for (const halftone::ProfiledStep& step : profile.steps) {
    Group& group = groups[fmt::format("{} {}", step.target, step.kernel)];
    ++group.count;
    group.seconds += step.seconds;
    group.limit += step.limit_seconds;
    sum += step.seconds;
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  if (sorted.size() > max_rows) sorted.resize(max_rows);
  std::vector<halftone::Row> rows;
  for (const auto& [name, group] : sorted) {
    rows.push_back({name, fmt::format("{}", group.count), fmt::format("{:.1f}", 1e6 * group.seconds),
                    fmt::format("{:.2f}", 1e6 * group.seconds / group.count),
                    fmt::format("{:.1f} %", 100 * group.seconds / sum),
                    fmt::format("{:.0f} %", 100 * group.limit / group.seconds)});
  }
  using halftone::Align;
  return halftone::render_table({{"step"},
                                 {"count", Align::kRight},
                                 {"us", Align::kRight},
                                 {"us each", Align::kRight},
                                 {"share", Align::kRight},
                                 {"of limit", Align::kRight}},
                                rows, 160);
}

void run(const Settings& settings) {
  const int threads = settings.threads > 0 ? settings.threads : at::get_num_threads();
  const halftone::DecoderSource source = halftone::open_decoder_source(settings.model);
  const int64_t end = settings.position + settings.tokens, context = end + 64;
  const auto module = halftone::capture_decoder(
      source.config, halftone::read_decoder_weights(*source.weights, source.config), context);
  halftone::DecoderScheme(settings.scheme).apply(*module);
  const auto compiled = halftone::compile(module, {.threads = threads});
  const halftone::CompiledDecoder decoder{
      module, compiled, context, source.config.has_window_within(context) ? source.config.window : 0};
  halftone::Session session(module, compiled);
  const auto inputs = decoder.inputs(at::full({1, settings.tokens}, 7, at::kLong), settings.position, end);
  session.run(inputs);
  const halftone::Profile profile =
      halftone::profile(session, *compiled, inputs, halftone::ProfileOptions{.runs = settings.runs});
  double sum = 0;
  for (const halftone::ProfiledStep& step : profile.steps) sum += step.seconds;
  fmt::print("{}", kernel_table(profile, settings.rows));
  fmt::print("{} steps, {:.3f} ms in steps, {:.3f} ms a call, {} threads, reads {:.1f} GB/s\n",
             profile.steps.size(), 1e3 * sum, 1e3 * profile.seconds, profile.threads,
             profile.limits.read_bytes_per_second / 1e9);
  if (!settings.trace.empty()) std::ofstream(settings.trace) << halftone::chrome_trace(profile);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("where the time of a token goes");
  app.add_option("MODEL", settings.model)->required()->check(CLI::ExistingFile);
  app.add_option("--scheme", settings.scheme);
  app.add_option("--tokens", settings.tokens)->check(CLI::PositiveNumber);
  app.add_option("--position", settings.position)->check(CLI::NonNegativeNumber);
  app.add_option("--threads", settings.threads)->check(CLI::NonNegativeNumber);
  app.add_option("--runs", settings.runs)->check(CLI::PositiveNumber);
  app.add_option("--rows", settings.rows)->check(CLI::PositiveNumber);
  app.add_option("--trace", settings.trace, "for chrome://tracing");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const halftone::Error& error) {
    fmt::print(stderr, "decoder_profile: {}\n", error.what());
    return 1;
  }
  return 0;
}
