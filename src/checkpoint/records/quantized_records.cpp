#include "checkpoint/records/quantized_records.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <nlohmann/json.hpp>
#include <set>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/container/ht_json.h"
#include "graph/aten/dtypes.h"
#include "graph/aten/torch_errors.h"

namespace halftone {
namespace {

nlohmann::json weight_json(const QuantizedRecord& record) {
  nlohmann::json parts = nlohmann::json::array();
  for (const HtRecord& part : record.parts) parts.push_back(record_json(part));
  return {{"config", nlohmann::json::parse(record.config)},
          {"sizes", record.sizes},
          {"dtype", ht::dtype_text(record.dtype)},
          {"parts", std::move(parts)}};
}

/// The operators check every part against each other and against x. A call without rows reads none of them.
void require_parts_fit(const QuantizedWeight& weight) {
  const c10::AutoGradMode no_grad(false);
  const std::string refused = weight.format->refuse(weight.sizes[0], weight.sizes[1]);
  if (!refused.empty()) fail(ErrorCode::kCorruptFile, "{}", refused);
  const at::Tensor nothing = at::empty({0, weight.sizes[1]}, at::kFloat);
  const at::Tensor result = weight.format->linear(nothing, weight, std::nullopt);
  if (result.dim() != 2 || result.size(1) != weight.sizes[0])
    fail(ErrorCode::kCorruptFile, "its parts are not those of {} outputs", weight.sizes[0]);
}

}  // namespace

nlohmann::json quantized_json(const std::vector<QuantizedRecord>& records) {
  nlohmann::json json = nlohmann::json::array();
  for (const QuantizedRecord& record : records) {
    nlohmann::json item = weight_json(record);
    item["name"] = ht::text_json(record.name);
    json.push_back(std::move(item));
  }
  return json;
}

std::vector<QuantizedRecord> read_quantized(const HtMetadata& metadata) {
  const nlohmann::json document = metadata.json(ht::kQuantizedKey);
  std::vector<QuantizedRecord> records;
  std::set<std::string> names;
  for (const JsonCursor& item : ht::elements(JsonCursor(document, metadata.place(ht::kQuantizedKey)))) {
    ht::require_known(item, {"name", "config", "sizes", "dtype", "parts"});
    QuantizedRecord record{ht::text_of(item.at("name")),
                           item.at("config").raw().dump(),
                           ht::sizes_of(item.at("sizes")),
                           ht::dtype_of(item.at("dtype")),
                           {}};
    if (record.sizes.size() != 2) item.at("sizes").fail_here("a weight has two sizes");
    for (const JsonCursor& part : ht::elements(item.at("parts"))) record.parts.push_back(record_of(part));
    if (!names.insert(record.name).second) item.fail_here("the parameter stands twice");
    records.push_back(std::move(record));
  }
  return records;
}

const QuantizedWeight& QuantizedRestorer::restore(const QuantizedRecord& record) {
  const std::string key = weight_json(record).dump();
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  const std::string place = fmt::format("{}: {}", file_.name(), quote_text(record.name));
  return guarded(place, [&]() -> const QuantizedWeight& {
    QuantConfig config = QuantConfig::from_json(record.config);
    auto format = format_of(config);
    QuantizedWeight weight{
        std::move(config), std::move(format), record.sizes, scalar_type_of(record.dtype), {}};
    for (const HtRecord& part : record.parts) weight.parts.emplace_back(part.name, tensors_.restore(part));
    require_parts_fit(weight);
    return made_.emplace(key, std::move(weight)).first->second;
  });
}

}  // namespace halftone
