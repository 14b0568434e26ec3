#include "inspect/inspect_backend.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/console.h"
#include "halftone/cli/table.h"
#include "halftone/compile/compile.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Found {
  std::vector<std::string> log;
  PlanReport plan;
  double compile_ms = 0, plan_ms = 0;
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Found look(const std::shared_ptr<const GraphModule>& module, const std::vector<c10::IValue>& inputs) {
  Found found;
  auto start = Clock::now();
  const auto compiled = compile(module);
  found.compile_ms = milliseconds_since(start);
  start = Clock::now();
  found.plan = compiled->report(inputs);
  found.plan_ms = milliseconds_since(start);
  found.log = compiled->log();
  return found;
}

std::string steps_table(const PlanReport& plan) {
  std::vector<Row> rows;
  for (const StepReport& step : plan.steps) {
    rows.push_back({std::to_string(rows.size() + 1), step.target, step.layer.empty() ? "(model)" : step.layer,
                    step.kernel, describe_bytes(step.bytes)});
  }
  return render_table({{"step", Align::kRight},
                       {"operator", Align::kLeft, Cut::kMiddle, 22},
                       {"layer", Align::kLeft, Cut::kName, 20},
                       {"kernel", Align::kLeft, Cut::kMiddle, 20},
                       {"moves", Align::kRight}},
                      rows, kColumns);
}

std::string as_text(const Found& found) {
  std::string text = "What the passes did\n";
  for (const std::string& line : found.log) text += wrap_text(line, kColumns);
  if (!found.plan.interpreted.empty()) {
    return text + "\nThe whole graph runs in the interpreter\n" + wrap_text(found.plan.interpreted, kColumns);
  }
  text += "\nSteps for the inputs at hand\n" + steps_table(found.plan);
  text += found.plan.left_to_aten.empty() ? "\nNothing is left to ATen.\n" : "\nLeft to ATen, and why\n";
  for (const std::string& line : found.plan.left_to_aten) text += wrap_text(line, kColumns);
  return text + fmt::format("\nCompiled in {:.1f} ms, planned (weights packed) in {:.1f} ms; arena {}\n",
                            found.compile_ms, found.plan_ms,
                            describe_bytes(static_cast<int64_t>(found.plan.arena_bytes)));
}

Json as_json(const Found& found) {
  Json steps = Json::array();
  for (const StepReport& step : found.plan.steps) {
    steps.push_back({{"target", step.target},
                     {"layer", step.layer},
                     {"kernel", step.kernel},
                     {"bytes", step.bytes},
                     {"operations", step.operations}});
  }
  return {{"backend", "halftone"},
          {"passes", found.log},
          {"interpreted", found.plan.interpreted},
          {"steps", std::move(steps)},
          {"left_to_aten", found.plan.left_to_aten},
          {"arena_bytes", found.plan.arena_bytes},
          {"compile_ms", found.compile_ms},
          {"plan_ms", found.plan_ms}};
}

}  // namespace

void inspect_backend(const std::shared_ptr<const GraphModule>& module, const std::vector<c10::IValue>& inputs,
                     bool json, Console& console) {
  const Found found = look(module, inputs);
  console.result(json ? as_json(found).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                      : as_text(found));
}

}  // namespace halftone::cli
