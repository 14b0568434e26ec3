// Profiles as tables and as traces for Perfetto.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "halftone/cli/table.h"
#include "halftone/compile/profile.h"

namespace halftone {

namespace {

using Json = nlohmann::ordered_json;

struct Sum {
  std::string layer;
  int64_t steps = 0, bytes = 0;
  double seconds = 0, limit = 0;
};

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e3);
}

std::string percent(double part, double whole) {
  return whole > 0 && part > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "–";
}

std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "–";
}

std::string shown_layer(const std::string& layer) {
  return layer.empty() ? "(model)" : layer;
}

Json event(const std::string& name, double start, double seconds, int row, Json details) {
  return {{"name", name}, {"ph", "X"},  {"ts", start * 1e6},         {"dur", seconds * 1e6},
          {"pid", 1},     {"tid", row}, {"args", std::move(details)}};
}

Json row_name(int row, const char* name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
}

/// Neighbours of one layer become one event.
void add_layers(const Profile& profile, Json& events) {
  constexpr int kRow = 1;
  for (size_t i = 0; i < profile.steps.size();) {
    size_t last = i;
    while (last + 1 < profile.steps.size() && profile.steps[last + 1].layer == profile.steps[i].layer) ++last;
    const double end = profile.steps[last].start + profile.steps[last].seconds;
    events.push_back(event(shown_layer(profile.steps[i].layer), profile.steps[i].start,
                           end - profile.steps[i].start, kRow, {{"steps", last - i + 1}}));
    i = last + 1;
  }
}

}  // namespace

std::string chrome_trace(const Profile& profile) {
  constexpr int kRow = 2;
  Json events = {row_name(1, "layers"), row_name(kRow, "steps")};
  add_layers(profile, events);
  for (const ProfiledStep& step : profile.steps) {
    events.push_back(event(step.target, step.start, step.seconds, kRow,
                           {{"layer", step.layer},
                            {"kernel", step.kernel},
                            {"bytes", step.bytes},
                            {"operations", step.operations},
                            {"limit_us", step.limit_seconds * 1e6}}));
  }
  const Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string layer_table(const Profile& profile, int width, size_t max_rows) {
  std::map<std::string, Sum> layers;
  for (const ProfiledStep& step : profile.steps) {
    Sum& sum = layers[step.layer];
    sum.layer = step.layer;
    ++sum.steps;
    sum.bytes += step.bytes;
    sum.seconds += step.seconds;
    sum.limit += step.limit_seconds;
  }
  std::vector<Sum> sorted;
  for (auto& [name, sum] : layers) sorted.push_back(std::move(sum));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Sum& a, const Sum& b) { return a.seconds > b.seconds; });
  std::vector<Row> rows;
  for (size_t i = 0; i < std::min(max_rows, sorted.size()); ++i) {
    const Sum& sum = sorted[i];
    rows.push_back({shown_layer(sum.layer), std::to_string(sum.steps), milliseconds(sum.seconds),
                    percent(sum.seconds, profile.seconds), describe_bytes(sum.bytes),
                    percent(sum.limit, sum.seconds)});
  }
  return render_table({{"layer", Align::kLeft, Cut::kName, 24},
                       {"steps", Align::kRight},
                       {"ms", Align::kRight},
                       {"of run", Align::kRight},
                       {"moved", Align::kRight},
                       {"of limit", Align::kRight}},
                      rows, width);
}

std::string step_table(const Profile& profile, int width, size_t max_rows) {
  std::vector<const ProfiledStep*> sorted;
  for (const ProfiledStep& step : profile.steps) sorted.push_back(&step);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  std::vector<Row> rows;
  for (size_t i = 0; i < std::min(max_rows, sorted.size()); ++i) {
    const ProfiledStep& step = *sorted[i];
    rows.push_back({step.target, shown_layer(step.layer), step.kernel, milliseconds(step.seconds),
                    percent(step.seconds, profile.seconds),
                    rate(static_cast<double>(step.bytes), step.seconds),
                    rate(static_cast<double>(step.operations), step.seconds),
                    percent(step.limit_seconds, step.seconds)});
  }
  return render_table({{"operator", Align::kLeft, Cut::kMiddle, 18},
                       {"layer", Align::kLeft, Cut::kName, 12},
                       {"kernel", Align::kLeft, Cut::kMiddle, 12},
                       {"ms", Align::kRight},
                       {"of run", Align::kRight},
                       {"GB/s", Align::kRight},
                       {"Gop/s", Align::kRight},
                       {"of limit", Align::kRight}},
                      rows, width);
}

}  // namespace halftone
