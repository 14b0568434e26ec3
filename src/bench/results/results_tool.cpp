// The component's functions on files, for tests in other languages and for the script that makes the sample
// report.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "archive/bytes/text_file.h"
#include "base/errors.h"
#include "halftone/bench/results.h"

namespace halftone {
namespace {

using Arguments = std::vector<std::string>;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

BenchCsv noted_csv(const std::string& path) {
  BenchCsv csv = read_bench_csv(path);
  for (const std::string& note : csv.notes) fmt::print(stderr, "note: {}\n", note);
  return csv;
}

BenchCheckOptions options_of(const Arguments& arguments) {
  BenchCheckOptions options;
  for (size_t i = 2; i < arguments.size(); ++i) options.partial |= arguments[i] == "--partial";
  return options;
}

int check(const Arguments& arguments) {
  const BenchCheck result =
      check_bench(noted_csv(arguments.at(0)).rows, noted_csv(arguments.at(1)).rows, options_of(arguments));
  print(result.text());
  return result.exit_code();
}

int append(const Arguments& arguments) {
  // Row by row, so that processes that append at the same time mix.
  for (const BenchRow& row : read_bench_json(arguments.at(1)).rows) {
    for (const std::string& note : append_bench_csv(arguments.at(0), {&row, 1}))
      fmt::print(stderr, "note: {}\n", note);
  }
  return 0;
}

int run(const std::string& command, const Arguments& arguments) {
  const auto in = [&] { return arguments.at(0); };
  const auto out = [&] { return arguments.at(1); };
  if (command == "html") return write_bench_html(out(), read_bench_json(in())), 0;
  if (command == "csv") return write_bench_csv(out(), read_bench_json(in()).rows), 0;
  if (command == "json") return write_bench_json(out(), read_bench_json(in())), 0;
  if (command == "json-of-csv") return write_bench_json(out(), {"", {}, noted_csv(in()).rows}), 0;
  if (command == "describe") return print(describe_bench(read_bench_json(in()).rows)), 0;
  if (command == "compare") return print(compare_bench(noted_csv(in()).rows, noted_csv(out()).rows)), 0;
  if (command == "check") return check(arguments);
  if (command == "append") return append(arguments);
  fail(ErrorCode::kInvalidArgument, "unknown command {}", command);
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw halftone::Error(halftone::ErrorCode::kInvalidArgument, "usage: COMMAND FILE…");
    return halftone::run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
