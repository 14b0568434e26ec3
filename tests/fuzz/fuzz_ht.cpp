// libFuzzer target: any bytes as a .ht container give records whose elements lie inside the file, or a
// halftone::Error; and lifecycle records that read back as they were written. The checksums are computed, but
// not asked: no mutation would get past them.
#include <nlohmann/json.hpp>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_json.h"
#include "checkpoint/container/ht_lifecycle.h"
#include "halftone/base/error.h"

namespace {

void check_record(const halftone::HtFile& file, const halftone::HtRecord& record) {
  const halftone::HtPlace place = file.place(record);
  if (place.sizes.empty() || !place.strides) return;
  int64_t last = place.offset;
  for (size_t i = 0; i < place.sizes.size(); ++i) {
    if (place.sizes[i] == 0) return;
    last += (place.sizes[i] - 1) * place.strides->at(i);
  }
  const size_t item = halftone::dtype_size(place.dtype);
  if (last < 0 || (static_cast<size_t>(last) + 1) * item > place.entry->bytes.size()) __builtin_trap();
}

/// Runs `check`; an Error is as good as an answer.
template <typename Check>
void attempt(Check check) {
  try {
    check();
  } catch (const halftone::Error&) {
  }
}

/// What was read is written, and read again to the same.
void check_lifecycle(const halftone::HtFile& file) {
  const halftone::HtLifecycle lifecycle = halftone::read_lifecycle(file.metadata());
  auto values = halftone::lifecycle_metadata(lifecycle);
  values["halftone.kind"] = "graph";
  const halftone::HtLifecycle again = halftone::read_lifecycle(halftone::HtMetadata(values, "again.ht"));
  if (halftone::samples_json(again.samples) != halftone::samples_json(lifecycle.samples)) __builtin_trap();
  if (again.backend.has_value() != lifecycle.backend.has_value()) __builtin_trap();
  for (const halftone::HtSample& sample : again.samples) halftone::describe(sample);
  for (const halftone::HtRecord* record : halftone::records_in(again.samples))
    attempt([&] { check_record(file, *record); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = halftone::HtFile::from_bytes(
        halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.ht"));
    file.digest_matches();
    attempt([&] { file.chunk_finding(); });
    attempt([&] { file.require_readable(/*verify=*/false); });
    attempt([&] { check_lifecycle(file); });
    file.layout_findings();
    const nlohmann::json document = file.metadata().json(halftone::ht::kTensorsKey);
    for (const auto& item : halftone::ht::elements(halftone::JsonCursor(document, "tensors"))) {
      attempt([&] {
        const halftone::HtRecord record = halftone::record_of(item);
        if (halftone::record_json(record).dump().empty()) __builtin_trap();
        check_record(file, record);
      });
    }
  } catch (const halftone::Error&) {
  }
  return 0;
}
