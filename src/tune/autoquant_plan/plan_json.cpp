// Plans as JSON: what people read and edit.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "archive/bytes/terminal_text.h"
#include "halftone/tune/autoquant_plan.h"
#include "tune/autoquant_plan/plan_format.h"
#include "tune/autoquant_plan/readable_json.h"

namespace halftone {
namespace {

using PlanJson = nlohmann::ordered_json;

/// What JSON has no word for is a string, as torch writes it and JsonCursor::get_double() reads it.
PlanJson plan_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

PlanJson texts_json(const std::vector<std::string>& texts) {
  PlanJson list = PlanJson::array();
  for (const std::string& text : texts) list.push_back(utf8_text(text));
  return list;
}

PlanJson planned_candidate_json(const AutoquantCandidate& candidate) {
  PlanJson json = {{"scheme", utf8_text(candidate.scheme)}};
  if (candidate.milliseconds) json["milliseconds"] = plan_number(*candidate.milliseconds);
  if (candidate.error) json["error"] = plan_number(*candidate.error);
  if (!candidate.note.empty()) json["note"] = utf8_text(candidate.note);
  return json;
}

PlanJson planned_layer_json(const AutoquantLayer& layer) {
  PlanJson json = {{"name", utf8_text(layer.name)}, {"choice", utf8_text(layer.choice)}};
  json["reason"] = utf8_text(layer.reason);
  json["kind"] = utf8_text(layer.kind);
  json["n"] = layer.n;
  json["k"] = layer.k;
  if (!layer.together.empty()) json["together"] = texts_json(layer.together);
  PlanJson& shapes = json["shapes"] = PlanJson::array();
  for (const AutoquantShape& shape : layer.shapes) {
    shapes.push_back({{"sizes", shape.sizes}, {"dtype", utf8_text(shape.dtype)}, {"calls", shape.calls}});
  }
  PlanJson& candidates = json["candidates"] = PlanJson::array();
  for (const AutoquantCandidate& candidate : layer.candidates)
    candidates.push_back(planned_candidate_json(candidate));
  return json;
}

PlanJson planned_run_json(const AutoquantRun& run) {
  return {{"name", utf8_text(run.name)},
          {"milliseconds", plan_number(run.milliseconds)},
          {"relative", plan_number(run.relative)},
          {"least_cosine", plan_number(run.min_cosine)},
          {"relative_low", plan_number(run.relative_low)},
          {"relative_high", plan_number(run.relative_high)},
          {"rounds", run.rounds},
          {"holds", run.holds},
          {"chosen", run.chosen}};
}

}  // namespace

std::string AutoquantPlan::to_json() const {
  PlanJson json = {{"format", kPlanFormat}, {"format_version", kPlanVersion}};
  json["model"] = utf8_text(model);
  json["model_hash"] = utf8_text(model_hash);
  json["cpu"] = utf8_text(cpu);
  json["isa"] = utf8_text(isa);
  json["threads"] = threads;
  json["halftone"] = utf8_text(version);
  json["measured_at"] = utf8_text(measured_at);
  json["seconds"] = plan_number(seconds);
  json["least_cosine"] = plan_number(min_cosine);
  json["least_layer_cosine"] = plan_number(min_layer_cosine);
  json["cosine"] = plan_number(cosine);
  json["notes"] = texts_json(notes);
  PlanJson& listed_runs = json["runs"] = PlanJson::array();
  for (const AutoquantRun& run : runs) listed_runs.push_back(planned_run_json(run));
  PlanJson& listed_layers = json["layers"] = PlanJson::array();
  for (const AutoquantLayer& layer : layers) listed_layers.push_back(planned_layer_json(layer));
  return readable_json(json) + "\n";
}

}  // namespace halftone
