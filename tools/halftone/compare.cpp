// halftone compare: two models on the same inputs: how far their results are apart, their times, their sizes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "common/command_line.h"
#include "common/console.h"
#include "common/describe.h"
#include "common/inputs.h"
#include "common/outputs.h"
#include "common/runner.h"
#include "compare_report.h"
#include "halftone/base/error.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

constexpr const char* kCompareDescription =
    "Run two models on the same inputs: results, times, sizes\n\n"
    "How far B's results are from A's (cosine, signal-to-noise ratio, largest error of an element), how\n"
    "long both take (in turns, so that both meet the same machine), and how large the files are. The\n"
    "inputs are A's. Elements that are NaN or infinite in both alike are equal; in one only, they differ.\n"
    "With --tolerance or --min-cosine results that are further apart are exit code 1; so are results of\n"
    "other shapes, and a machine that is too busy to be measured on.";
constexpr const char* kCompareExamples = R"(Examples:
  halftone compare model.pt2 tuned.ht
  halftone compare model.pt2 small.ht --min-cosine 0.999 --no-times
  halftone compare model.pt2 model.pt2 --backend-a eager --tolerance 1e-4
  halftone compare model.pt2 tuned.ht --shapes input_ids:1x128,attention_mask:1x128 --json)";

struct CompareRequest {
  RunnerOptions a, b;
  InputOptions inputs;
  std::optional<double> tolerance;
  std::optional<double> min_cosine;
  double seconds = 2;
  bool no_times = false;
};

/// The results of all calls, from a reset state. Clones: they may share memory with the session's state.
std::vector<std::vector<Output>> answers_of(Runner& runner, const std::vector<InputSet>& calls) {
  std::vector<std::vector<Output>> answers;
  runner.session.reset();
  for (const InputSet& call : calls) {
    const GraphModule& module = runner.session.module();
    const std::vector<c10::IValue> inputs = copy_for_call(module, call);
    answers.push_back(name_outputs(module, inputs, runner.session.run(inputs)));
    for (Output& output : answers.back())
      if (output.value.isTensor()) output.value = output.value.toTensor().clone();
  }
  return answers;
}

std::vector<at::Tensor> tensors_of(const std::vector<std::vector<Output>>& answers) {
  std::vector<at::Tensor> tensors;
  for (const std::vector<Output>& call : answers) {
    for (const Output& output : call)
      if (const at::Tensor tensor = tensor_of(output.value); tensor.defined()) tensors.push_back(tensor);
  }
  return tensors;
}

[[noreturn]] void refuse_models(const CompareRequest& options, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} and {} cannot be compared: {}",
                                                       options.a.model.path, options.b.model.path, why));
}

void require_same_inputs(const CompareRequest& options, const GraphModule& a, const GraphModule& b) {
  if (a.input_names() == b.input_names()) return;
  refuse_models(options, fmt::format("they take other inputs. A takes:{}\nB takes:{}", expected_inputs(a),
                                     expected_inputs(b)));
}

std::string describe_kind(const c10::IValue& value) {
  const at::Tensor tensor = tensor_of(value);
  if (value.isTensor()) return dtype_name(tensor.scalar_type()) + " " + describe_sizes(tensor.sizes());
  return tensor.defined() ? "a number" : value.isNone() ? "None" : "a string";
}

void require_same_kind(const CompareRequest& options, const Output& a, const Output& b) {
  const at::Tensor x = tensor_of(a.value), y = tensor_of(b.value);
  const bool same = x.defined() == y.defined() && (!x.defined() || x.sizes() == y.sizes());
  if (!same)
    refuse_models(options, fmt::format("{} is {} in A and {} in B", a.name, describe_kind(a.value),
                                       describe_kind(b.value)));
}

int64_t count_beyond(const at::Tensor& x, const at::Tensor& y, double tolerance) {
  if (x.is_complex() || y.is_complex()) return 0;  // the cosine speaks for them
  const at::Tensor a = x.to(at::kDouble), b = y.to(at::kDouble);
  const at::Tensor off = a.sub(b).abs().gt(a.abs().add(1).mul(tolerance));
  return off.logical_and(a.isfinite()).logical_and(b.isfinite()).sum().item<int64_t>();
}

ComparedOutput compare_output(const CompareRequest& options, size_t index,
                              const std::vector<std::vector<Output>>& a,
                              const std::vector<std::vector<Output>>& b) {
  const Output& first = a.front()[index];
  ComparedOutput result{first.name, first.path, describe_kind(first.value)};
  std::vector<at::Tensor> x, y;
  for (size_t call = 0; call < a.size(); ++call) {
    const Output& left = a[call][index];
    const Output& right = b[call][index];
    require_same_kind(options, left, right);
    if (tensor_of(left.value).defined()) {
      x.push_back(tensor_of(left.value).reshape({-1}));
      y.push_back(tensor_of(right.value).reshape({-1}));
    } else if (!left.value.isNone() && left.value.toStringRef() != right.value.toStringRef()) {
      refuse_models(options, fmt::format("{} is another text", left.name));
    }
  }
  if (x.empty()) return result;
  const at::Tensor all_x = at::cat(x), all_y = at::cat(y);
  result.measure = compare_tensors(all_x, all_y);
  if (options.tolerance)
    result.beyond = count_beyond(all_x, all_y, *options.tolerance) + result.measure.differing_not_finite;
  return result;
}

std::vector<ComparedOutput> compare_answers(const CompareRequest& options,
                                            const std::vector<std::vector<Output>>& a,
                                            const std::vector<std::vector<Output>>& b) {
  if (a.front().size() != b.front().size())
    refuse_models(options, fmt::format("A gives {} results, B {}", a.front().size(), b.front().size()));
  std::vector<ComparedOutput> outputs;
  for (size_t i = 0; i < a.front().size(); ++i) outputs.push_back(compare_output(options, i, a, b));
  return outputs;
}

TimedCandidate timed_candidate_of(const char* name, Runner& runner, const std::vector<InputSet>& calls) {
  auto inputs = std::make_shared<std::vector<std::vector<c10::IValue>>>();
  TimedCandidate timed_candidate{name, [inputs, &runner] {
                                   for (std::vector<c10::IValue>& call : *inputs)
                                     runner.session.run(std::move(call));
                                 }};
  timed_candidate.prepare = [inputs, &runner, &calls] {
    runner.session.reset();
    inputs->clear();
    for (const InputSet& call : calls) inputs->push_back(copy_for_call(runner.session.module(), call));
  };
  return timed_candidate;
}

void add_times(const CompareRequest& options, Runner& a, Runner& b, const std::vector<InputSet>& calls,
               Comparison& comparison, Console& console) {
  ProgressBar bar(console, "timing", 100);
  MeasureOptions how;
  how.seconds = options.seconds;
  how.progress = [&](double share) { bar.update(static_cast<int64_t>(100 * share)); };
  const Measurements measured =
      measure({timed_candidate_of("A", a, calls), timed_candidate_of("B", b, calls)}, how);
  for (const MeasuredTime& row : measured.rows)
    if (row.failed) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", row.name, row.reason));
  if (measured.too_busy) {
    comparison.no_times = MachineBusy(measured.disturbed, measured.disturbed + measured.rounds).what();
    return;
  }
  const MeasuredTime &first = measured.rows[0], &second = measured.rows[1];
  comparison.times = {first, second, paired_ratio(first, second), paired_interval(first, second),
                      measured.rounds};
}

std::vector<std::string> findings_of(const CompareRequest& options, const Comparison& comparison) {
  std::vector<std::string> findings;
  for (const ComparedOutput& output : comparison.outputs) {
    const ErrorMeasure& measure = output.measure;
    if (output.beyond > 0)
      findings.push_back(fmt::format(
          "{}: {} of {} elements are beyond --tolerance {}", output.name, output.beyond,
          measure.finite + measure.same_not_finite + measure.differing_not_finite, *options.tolerance));
    if (!options.min_cosine) continue;
    if (measure.cosine < *options.min_cosine)
      findings.push_back(
          fmt::format("{}: cosine {:.9g} is less than {}", output.name, measure.cosine, *options.min_cosine));
    if (measure.differing_not_finite > 0)
      findings.push_back(fmt::format("{}: {} elements are NaN or infinite in one model only", output.name,
                                     measure.differing_not_finite));
  }
  return findings;
}

int compare(const CompareRequest& options, const CommonOptions& common, Console& console) {
  Runner a = make_runner(options.a, console);
  Runner b = make_runner(options.b, console);
  const GraphModule& module = a.session.module();
  require_same_inputs(options, module, b.session.module());
  const std::vector<InputSet> calls = collect_inputs(module, options.inputs);
  const auto expected = answers_of(a, calls);
  require_same_answers(module, tensors_of(expected), tensors_of(answers_of(a, calls)));
  Comparison comparison;
  comparison.a = {options.a.model.path, a.backend, file_bytes(options.a.model.path)};
  comparison.b = {options.b.model.path, b.backend, file_bytes(options.b.model.path)};
  for (const InputSet& call : calls) comparison.calls.push_back(call.origin);
  comparison.outputs = compare_answers(options, expected, answers_of(b, calls));
  if (!options.no_times) add_times(options, a, b, calls, comparison, console);
  comparison.findings = findings_of(options, comparison);
  using Json = nlohmann::ordered_json;
  console.result(common.json
                     ? comparison_json(comparison).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                     : comparison_text(comparison));
  for (const std::string& finding : comparison.findings) console.warn(finding);
  return comparison.findings.empty() && comparison.no_times.empty() ? kDone : kJobFailed;
}

void add_limits(CLI::App& command, CompareRequest& options) {
  command
      .add_option("--tolerance", options.tolerance,
                  "Elements y of B are right where |x - y| <= X * (1 + |x|); one that is\nnot is exit code 1")
      ->type_name("X")
      ->check(CLI::Validator(check_not_negative, "NONNEGATIVE"));
  command
      .add_option("--min-cosine", options.min_cosine,
                  "Least cosine of each result to A's; less is exit code 1")
      ->type_name("X")
      ->check(CLI::Range(-1.0, 1.0));
  auto* seconds = command.add_option("--seconds", options.seconds, "For the times")
                      ->type_name("S")
                      ->capture_default_str()
                      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_flag("--no-times", options.no_times, "Only results and sizes")->excludes(seconds);
}

}  // namespace

void add_compare(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<CompareRequest>();
  CLI::App* command = app.add_subcommand("compare", kCompareDescription);
  command->footer(kCompareExamples);
  command->add_option("A", options->a.model.path, "The model that is right: a .pt2 or .ht file")
      ->required()
      ->type_name("");
  command->add_option("B", options->b.model.path, "The model that is compared with it")
      ->required()
      ->type_name("");
  add_input_options(*command, options->inputs,
                    "Inputs of a call; may be repeated (default: A's sample inputs)");
  add_backend_option(*command, options->a.backend, "--backend-a");
  add_backend_option(*command, options->b.backend, "--backend-b");
  add_limits(*command, *options);
  add_library_option(*command, options->a.model.libraries);
  add_steps_option(*command, options->a.model.max_steps);
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    line.job = [options, &line](Console& console) {
      line.exit_code = compare(*options, line.common, console);
    };
  });
}

}  // namespace halftone::cli
