#include "tune/autoquant/plan_key.h"

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <span>

#include "base/sha256.h"
#include "tune/autoquant/planner.h"
#include "tune/autoquant/time_cache.h"
#include "tune/report/report_json.h"

namespace halftone::aq {
namespace {

std::string digest_of_calls(const std::vector<Sample>& calls) {
  Sha256 sha;
  for (const Sample& call : calls) {
    for (const c10::IValue& leaf : leaves_of(call)) {
      if (!leaf.isTensor() || !leaf.toTensor().defined()) continue;
      const at::Tensor dense = leaf.toTensor().contiguous();
      sha.update(std::as_bytes(
          std::span(static_cast<const char*>(dense.const_data_ptr()), static_cast<size_t>(dense.nbytes()))));
    }
  }
  return to_hex(sha.finish());
}

}  // namespace

std::string plan_key(const std::string& model_hash, const SampleLayout& samples,
                     const std::vector<double>& weights, const AutoquantOptions& options) {
  nlohmann::ordered_json json = {{"model", model_hash},
                                 {"shapes", shapes_json(samples.shapes)},
                                 {"weights", weights},
                                 {"validation", digest_of_calls(samples.validation)},
                                 {"calls", digest_of_calls(samples.calls)}};
  for (const AutoquantScheme& scheme : schemes_to_try(options)) json["schemes"].push_back(scheme.name);
  json["least_layer_cosine"] = options.min_layer_cosine;
  json["least_cosine"] = options.min_cosine;
  json["race"] = options.final_comparison;
  json["include"] = options.include;
  json["exclude"] = options.exclude;
  json["machine"] = machine_text();
  const std::string text = dump_json(json, -1);
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

}  // namespace halftone::aq
