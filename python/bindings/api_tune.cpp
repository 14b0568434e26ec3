// tune on graphs, and its report.
#include <pybind11/functional.h>

#include "api.h"
#include "halftone/backend/backend.h"
#include "halftone/tune/tune.h"

namespace halftone::python {
namespace {

TuneMetric to_metric(const py::object& function) {
  if (function.is_none()) return nullptr;
  return [callback = Callback(function)](const c10::IValue& expected, const c10::IValue& got) {
    const py::gil_scoped_acquire gil;
    return callback.function()(to_python(expected), to_python(got)).cast<double>();
  };
}

struct Job {
  Samples samples;
  Strategy strategy;
  TuneOptions options;
};

Job job_of(const py::iterable& samples, const py::iterable& held_out, const std::string& strategy,
           const py::dict& given) {
  Job job{Samples(to_samples(samples)), max_throughput(), {}};
  job.samples.held_out = to_samples(held_out);
  StrategyNumbers numbers;
  if (!given["budget_ms"].is_none()) numbers.budget_ms = given["budget_ms"].cast<double>();
  if (!given["minimum"].is_none()) numbers.minimum = given["minimum"].cast<double>();
  numbers.candidate = given["candidate"].cast<std::string>();
  job.strategy = strategy_by_name(strategy, numbers);
  job.options.candidates = select_candidates(given["backends"].cast<std::vector<std::string>>(),
                                             given["schemes"].cast<std::vector<std::string>>());
  job.options.min_cosine = given["min_cosine"].cast<double>();
  job.options.metric = to_metric(given["metric"]);
  job.options.metric_name = given["metric_name"].cast<std::string>();
  job.options.time_limit = given["time_limit"].cast<double>();
  job.options.cache_dir = given["cache_dir"].cast<std::string>();
  job.options.progress = to_progress(given["progress"]);
  return job;
}

py::tuple tune_graph(const std::shared_ptr<GraphModule>& module, const py::iterable& samples,
                     const py::iterable& held_out, const std::string& strategy, const py::dict& given) {
  const Job job = job_of(samples, held_out, strategy, given);
  std::optional<TuneResult> result;
  {
    const WithoutGil no_gil;
    result.emplace(tune(ModelSource(module), job.samples, job.strategy, job.options));
  }
  return py::make_tuple(result->backend, result->report);
}

}  // namespace

void bind_tune(py::module_& m) {
  py::class_<TuneReport>(m, "TuneReport")
      .def_static(
          "from_json", [](const std::string& json) { return TuneReport::from_json(json); }, py::arg("json"))
      .def_readonly("model", &TuneReport::model)
      .def_readonly("strategy", &TuneReport::strategy)
      .def_readonly("chosen", &TuneReport::chosen)
      .def_readonly("won", &TuneReport::won)
      .def_readonly("met", &TuneReport::met)
      .def_readonly("seconds", &TuneReport::seconds)
      .def_readonly("notes", &TuneReport::notes)
      .def("to_json", &TuneReport::to_json)
      .def("to_text", &TuneReport::to_text)
      .def("__str__", &TuneReport::to_text)
      .def("__repr__", [](const TuneReport& report) {
        return "TuneReport(chosen=\"" + report.chosen + "\", " + std::to_string(report.candidates.size()) +
               " candidates)";
      });
  m.def("tune_graph", &tune_graph, py::arg("module"), py::arg("samples"), py::arg("held_out"),
        py::arg("strategy"), py::arg("options"));
  m.def(
      "plan_tuning",
      [](const std::shared_ptr<GraphModule>& module, const py::iterable& samples,
         const py::iterable& held_out, const std::string& strategy, const py::dict& given) {
        const Job job = job_of(samples, held_out, strategy, given);
        return dry_run(ModelSource(module), job.samples, job.strategy, job.options).to_text();
      },
      py::arg("module"), py::arg("samples"), py::arg("held_out"), py::arg("strategy"), py::arg("options"));
  m.def("strategy_names", &strategy_names);
}

}  // namespace halftone::python
