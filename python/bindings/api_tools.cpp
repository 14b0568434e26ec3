// The log, benchmarks and the presets of setup_baseline().
#include "api.h"
#include "halftone/base/log.h"
#include "halftone/bench/bench.h"
#include "halftone/cli/kernels.h"
#include "halftone/compat/baseline.h"
#include "halftone/compile/compilers.h"

namespace halftone::python {
namespace {

int python_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return 10;
    case LogLevel::kInfo:
      return 20;
    case LogLevel::kWarning:
      return 30;
    case LogLevel::kError:
      return 40;
  }
  return 30;
}

/// None: back to stderr.
void set_sink(const py::object& function) {
  if (function.is_none()) return set_log_sink(default_log_sink());
  set_log_sink([callback = Callback(function)](LogLevel level, std::string_view message) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    try {
      callback.function()(python_level(level), message);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("the log of halftone");  // a message must not end the work that it is about
    }
  });
}

std::vector<std::tuple<std::string, std::string, std::string>> options_of(const std::string& preset) {
  std::vector<std::tuple<std::string, std::string, std::string>> result;
  for (const BaselineOption& option : list_baseline_options(setup_baseline(preset))) {
    result.emplace_back(option.name, option.value, option.what);
  }
  return result;
}

std::string run_suite(const std::vector<std::string>& jobs, const py::object& progress) {
  std::vector<BenchJob> parsed;
  for (const std::string& job : jobs) parsed.push_back(bench_job_from_json(job));
  BenchRunOptions options;
  options.progress = to_progress(progress);
  const WithoutGil no_gil;
  return to_json(run_bench_suite(parsed, options));
}

}  // namespace

void bind_tools(py::module_& m) {
  m.def("set_log_sink", &set_sink, py::arg("function").none(true));
  m.def("baseline_options", &options_of, py::arg("preset"));
  m.def("baseline_presets", &baseline_presets);
  m.def("compilers", [] {
    std::vector<std::pair<std::string, std::string>> result;
    for (const CompilerInfo& info : list_compilers({})) result.emplace_back(info.name, info.what);
    return result;
  });
  m.def("instruction_set", &active_instruction_set);
  m.def(
      "select_bench_models", [](const std::string& suite) { return select_bench_models(suite); },
      py::arg("suite"));
  m.def("default_bench_job", [] {
    BenchJob job;
    job.model = "mlp_mixer";
    return to_json(job);
  });
  m.def("run_bench_suite", &run_suite, py::arg("jobs"), py::arg("progress").none(true));
}

}  // namespace halftone::python
