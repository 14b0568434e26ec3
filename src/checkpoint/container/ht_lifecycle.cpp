#include "checkpoint/container/ht_lifecycle.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"

namespace halftone {
namespace {

/// INIT is not among them: there is nothing to save.
constexpr std::array kStates = {"ACTIVE", "INACTIVE", "CHECKPOINT_LOADED", "DEPLOYED"};
constexpr std::array kWeights = {"original", "converted"};
/// Of the tuning record: what a report of some hundred candidates needs, many times over.
constexpr JsonLimits kTuningLimits{.max_depth = 32, .max_bytes = size_t{16} << 20, .max_values = 1'000'000};

template <size_t kCount>
std::string one_of(const JsonCursor& place, const std::array<const char*, kCount>& words) {
  std::string text = place.get_string();
  if (std::find(words.begin(), words.end(), text) == words.end())
    place.fail_here(fmt::format("{} is not known here", quote_text(text)));
  return text;
}

HtBackend backend_of(const JsonCursor& place) {
  ht::require_known(place, {"type", "config", "device", "state", "weights"});
  const JsonCursor config = place.at("config");
  if (!config.raw().is_object()) config.fail_here("expected an object");
  HtBackend backend;
  backend.type = place.at("type").get_string();
  backend.config = config.raw().dump();
  backend.device = place.at("device").get_string();
  backend.state = one_of(place.at("state"), kStates);
  backend.converted = one_of(place.at("weights"), kWeights) == kWeights[1];
  return backend;
}

std::string backend_json(const HtBackend& backend) {
  const nlohmann::json json = {{"type", backend.type},
                               {"config", nlohmann::json::parse(backend.config)},
                               {"device", backend.device},
                               {"state", backend.state},
                               {"weights", kWeights[backend.converted ? 1 : 0]}};
  return json.dump();
}

void require_object(const std::string& text, const std::string& place) {
  const nlohmann::json document = parse_json(text, place, kTuningLimits);
  if (!document.is_object()) JsonCursor(document, place).fail_here("expected an object");
}

}  // namespace

std::map<std::string, std::string> lifecycle_metadata(const HtLifecycle& lifecycle) {
  std::map<std::string, std::string> values;
  if (lifecycle.backend) values[ht::kBackendKey] = backend_json(*lifecycle.backend);
  if (!lifecycle.samples.empty()) values[ht::kSamplesKey] = samples_json(lifecycle.samples).dump();
  if (lifecycle.tuning.empty()) return values;
  try {
    require_object(lifecycle.tuning, "the tuning record");
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
  values[ht::kTuningKey] = lifecycle.tuning;
  return values;
}

HtLifecycle read_lifecycle(const HtMetadata& metadata) {
  HtLifecycle lifecycle;
  if (metadata.has(ht::kBackendKey)) {
    const nlohmann::json document = metadata.json(ht::kBackendKey);
    lifecycle.backend = backend_of(JsonCursor(document, metadata.place(ht::kBackendKey)));
  }
  for (const std::string& key : {ht::kTuningKey, ht::kSamplesKey, ht::kBackendKey}) {
    if (!metadata.has(key)) continue;
    if (!lifecycle.backend)
      fail(ErrorCode::kCorruptFile, "{} without {}", metadata.place(key), ht::kBackendKey);
    if (metadata.text(ht::kKindKey) != ht::kGraphKind)
      fail(ErrorCode::kCorruptFile, "{}: only graphs have a backend", metadata.place(key));
  }
  if (metadata.has(ht::kTuningKey)) {
    lifecycle.tuning = metadata.text(ht::kTuningKey);
    require_object(lifecycle.tuning, metadata.place(ht::kTuningKey));
  }
  if (metadata.has(ht::kSamplesKey)) {
    const nlohmann::json document = metadata.json(ht::kSamplesKey);
    lifecycle.samples = samples_of(JsonCursor(document, metadata.place(ht::kSamplesKey)));
  }
  return lifecycle;
}

}  // namespace halftone
