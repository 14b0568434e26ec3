// Shared by the tests of this folder: a plan with a value in every field.
#pragma once

#include <string>

#include "halftone/tune/autoquant_plan.h"

namespace halftone {

inline AutoquantPlan full_plan(const std::string& text = "encoder.0") {
  AutoquantPlan plan;
  plan.model = plan.model_hash = plan.cpu = plan.isa = plan.version = plan.measured_at = text;
  plan.threads = 2;
  plan.min_cosine = 0.995;
  plan.min_layer_cosine = 0.98;
  plan.cosine = 0.99712345678901234;
  plan.seconds = 12.25;
  plan.notes = {text, "a note"};
  AutoquantLayer layer;
  layer.name = text;
  layer.kind = "linear";
  layer.n = 384;
  layer.k = 1536;
  layer.together = {text + ".key", text + ".value"};
  layer.shapes = {{{8, 128, 384}, "f32", 4}, {{1, 16, 384}, "f32", 1}};
  layer.candidates = {{"fp32", 1.5, 0.0, ""}, {"int8dq", 0.7, 1e-4, ""}, {"int4wo", {}, {}, text}};
  layer.choice = "int8dq";
  layer.reason = text;
  AutoquantLayer unseen;
  unseen.name = text + ".unseen";
  unseen.choice = "fp32";
  unseen.reason = "not seen in calibration";
  plan.layers = {layer, unseen};
  plan.runs = {{text, 10.5, 0.5, 0.997, true, true}, {"fp32", 21, 1, 1, true, false}};
  return plan;
}

}  // namespace halftone
