// Plans as text for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "archive/bytes/terminal_text.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/tune/autoquant_plan.h"
#include "tune/report/report_text.h"

namespace halftone {
namespace {

std::string planned_ms(const std::optional<double>& ms) {
  return ms ? fmt::format("{:.{}f}", *ms, *ms < 1 ? 3 : *ms < 100 ? 2 : 0) : "-";
}

/// Names and messages may hold words that no line can take.
std::string plan_line(const std::string& text) {
  std::string line;
  const std::string safe = terminal_text(text, 2000);
  for (size_t begin = 0; begin <= safe.size();) {
    const size_t end = std::min(safe.find(' ', begin), safe.size());
    if (begin > 0) line += ' ';
    line += shorten(safe.substr(begin, end - begin), kReportWidth - 4);
    begin = end + 1;
  }
  return wrap_text(line, kReportWidth);
}

const AutoquantCandidate* candidate_named(const AutoquantLayer& layer, std::string_view scheme) {
  const auto found = std::ranges::find_if(
      layer.candidates, [&](const AutoquantCandidate& each) { return each.scheme == scheme; });
  return found == layer.candidates.end() ? nullptr : &*found;
}

std::string seen_shapes(const AutoquantLayer& layer) {
  if (layer.shapes.empty()) return "-";
  std::string sizes;
  for (const int64_t size : layer.shapes.front().sizes)
    sizes += (sizes.empty() ? "" : "×") + fmt::to_string(size);
  if (layer.shapes.size() > 1) sizes += fmt::format(" +{}", layer.shapes.size() - 1);
  return sizes;
}

/// Many layers have the same reason: a number in the table, and a line for each below it.
class ReasonList {
 public:
  std::string number_of(const std::string& reason) {
    if (reason.empty()) return "";
    const auto found = std::ranges::find(reasons_, reason);
    const auto index = found - reasons_.begin();
    if (found == reasons_.end()) reasons_.push_back(reason);
    return fmt::format("({})", index + 1);
  }
  std::string to_text() const {
    std::string text;
    for (size_t i = 0; i < reasons_.size(); ++i)
      text += plan_line(fmt::format("({}) {}", i + 1, reasons_[i]));
    return text;
  }

 private:
  std::vector<std::string> reasons_;
};

Row layer_row(const AutoquantLayer& layer, ReasonList& reasons) {
  const AutoquantCandidate* chosen = candidate_named(layer, layer.choice);
  const AutoquantCandidate* fp32 = candidate_named(layer, "fp32");
  const bool has_error = chosen != nullptr && chosen->error && chosen != fp32;
  return {terminal_text(layer.name),
          layer.together.empty() ? "" : fmt::format("+{}", layer.together.size()),
          layer.n > 0 ? fmt::format("{}×{}", layer.n, layer.k) : "-",
          seen_shapes(layer),
          terminal_text(layer.choice),
          chosen == nullptr ? "-" : planned_ms(chosen->milliseconds),
          fp32 == nullptr ? "-" : planned_ms(fp32->milliseconds),
          has_error ? fmt::format("{:.1e}", *chosen->error) : "-",
          reasons.number_of(layer.reason)};
}

std::string layers_table(const std::vector<AutoquantLayer>& layers) {
  std::vector<Row> rows;
  ReasonList reasons;
  for (const AutoquantLayer& layer : layers) rows.push_back(layer_row(layer, reasons));
  return render_table({{"layer", Align::kLeft, Cut::kName, 16},
                       {"", Align::kRight},
                       {"weights", Align::kRight},
                       {"input", Align::kRight, Cut::kMiddle, 8},
                       {"choice"},
                       {"ms", Align::kRight},
                       {"fp32 ms", Align::kRight},
                       {"error", Align::kRight},
                       {"why"}},
                      rows, kReportWidth) +
         "\n" + reasons.to_text();
}

std::string runs_table(const std::vector<AutoquantRun>& runs) {
  std::vector<Row> rows;
  for (const AutoquantRun& run : runs) {
    const std::string speed = run.relative > 0 ? fmt::format("{:.2f} x", 1 / run.relative) : "-";
    const bool known = run.relative_low > 0 && run.relative_high > 0;
    rows.push_back({terminal_text(run.name), planned_ms(run.milliseconds), speed,
                    known ? fmt::format("{:.2f}-{:.2f} x", 1 / run.relative_high, 1 / run.relative_low) : "-",
                    run.rounds > 0 ? fmt::to_string(run.rounds) : "-", fmt::format("{:.5f}", run.min_cosine),
                    run.holds ? "yes" : "no", run.chosen ? "chosen" : ""});
  }
  return render_table({{"whole model", Align::kLeft, Cut::kMiddle, 14},
                       {"ms", Align::kRight},
                       {"to fp32", Align::kRight},
                       {"95 %", Align::kRight},
                       {"n", Align::kRight},
                       {"cosine", Align::kRight},
                       {"in budget"},
                       {""}},
                      rows, kReportWidth);
}

}  // namespace

std::string AutoquantPlan::to_text() const {
  std::string text;
  if (!model.empty() || !cpu.empty())
    text += plan_line(fmt::format("{}, {}, {}, {}, halftone {}, {}", model, counted(threads, "thread"), cpu,
                                  isa, version, measured_at));
  text += layers_table(layers);
  if (!runs.empty()) text += "\n" + runs_table(runs);
  text += "\n";
  for (const std::string& note : notes) text += plan_line(note);
  const auto taken =
      std::ranges::count_if(layers, [](const AutoquantLayer& layer) { return layer.choice != "fp32"; });
  text += plan_line(
      fmt::format("{} of {} with a scheme, the rest in fp32", taken, counted(layers.size(), "layer")));
  if (cosine != 0)
    text += plan_line(
        fmt::format("least cosine of the model's results {:.5f}, asked for {}", cosine, min_cosine));
  if (seconds > 0) text += plan_line(fmt::format("planned in {:.1f} s", seconds));
  return text;
}

}  // namespace halftone
