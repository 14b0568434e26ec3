// Records of tensors: as JSON, and checked against the bytes that the file has for them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "archive/bytes/text.h"
#include "base/checked.h"
#include "base/errors.h"
#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_json.h"

namespace halftone {
namespace {

/// Whether the strides are those of a row-major tensor with its dimensions permuted: each byte used once,
/// none left out.
bool is_permutation(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  if (sizes.size() != strides.size()) return false;
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(strides[a], sizes[a]) < std::pair(strides[b], sizes[b]);
  });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (sizes[i] == 1) continue;  // its stride is never used
    if (strides[i] != expected) return false;
    const auto next = checked_mul(expected, sizes[i]);
    if (!next) return false;
    expected = *next;
  }
  return true;
}

/// offset + the largest index + 1, in elements; 0 for tensors without elements; nothing if it overflows.
std::optional<int64_t> elements_needed(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                                       int64_t offset) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto reach = checked_mul(sizes[i] - 1, strides[i]);
    const auto sum = reach ? checked_add(last, *reach) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return checked_add(last, int64_t{1});
}

}  // namespace

nlohmann::json record_json(const HtRecord& record) {
  nlohmann::json json = {{"name", ht::text_json(record.name)}};
  if (record.stored != record.name) json["stored"] = record.stored;
  if (record.requires_grad) json["grad"] = true;
  if (record.strides) json["strides"] = *record.strides;
  if (record.view) {
    json["view"] = {{"dtype", ht::dtype_text(record.view->dtype)},
                    {"offset", record.view->offset},
                    {"sizes", record.view->sizes},
                    {"strides", record.view->strides}};
  }
  return json;
}

HtRecord record_of(const JsonCursor& place) {
  ht::require_known(place, {"name", "stored", "grad", "strides", "view"});
  HtRecord record;
  record.name = ht::text_of(place.at("name"));
  record.stored = place.has("stored") ? place.at("stored").get_string() : record.name;
  record.requires_grad = place.has("grad") && place.at("grad").get_bool();
  if (place.has("strides")) record.strides = ht::sizes_of(place.at("strides"));
  if (!place.has("view")) return record;
  if (record.strides) place.fail_here("has both strides and a view");
  const JsonCursor view = place.at("view");
  ht::require_known(view, {"dtype", "offset", "sizes", "strides"});
  record.view = {ht::dtype_of(view.at("dtype")), view.at("offset").get_int(), ht::sizes_of(view.at("sizes")),
                 ht::sizes_of(view.at("strides"))};
  return record;
}

HtPlace HtFile::place(const HtRecord& record) const {
  const auto refuse = [&](std::string_view why) {
    fail(ErrorCode::kCorruptFile, "{}: tensor {}: {}", name(), quote_text(record.name), why);
  };
  const SafetensorsEntry* entry = tensors_.try_entry(record.stored);
  if (entry == nullptr) refuse(fmt::format("{} is not in the file", quote_text(record.stored)));
  if (is_filler(record.stored)) refuse(fmt::format("{} belongs to the format", quote_text(record.stored)));
  HtPlace place{entry, entry->dtype, entry->shape, record.strides, 0, record.view.has_value()};
  if (record.strides && !is_permutation(entry->shape, *record.strides))
    refuse("its strides are no permutation of a row-major tensor's");
  if (!record.view) return place;

  const HtRecord::View& view = *record.view;
  const auto item = static_cast<int64_t>(dtype_size(view.dtype));
  if (view.sizes.size() != view.strides.size()) refuse("its view has not as many strides as sizes");
  if (view.offset < 0 || view.offset % item != 0) refuse("its view begins between two elements");
  if (!tensor_bytes(view.sizes, view.dtype)) refuse("the sizes of its view overflow");
  const auto count = elements_needed(view.sizes, view.strides, view.offset / item);
  const auto needed = count ? checked_mul(*count, item) : std::nullopt;
  if (!needed || std::cmp_greater(*needed, entry->bytes.size()))
    refuse(fmt::format("its view leaves the {} bytes of {}", entry->bytes.size(), quote_text(record.stored)));
  place.dtype = view.dtype;
  place.sizes = view.sizes;
  place.strides = view.strides;
  // For a tensor without elements the offset may lie anywhere; zero is as good and always inside.
  place.offset = *needed == 0 ? 0 : view.offset / item;
  return place;
}

}  // namespace halftone
