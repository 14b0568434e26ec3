// libFuzzer target: any bytes as a .ht container give records whose elements lie inside the file, or a
// halftone::Error. The checksum is not asked: no mutation would get past it.
#include <nlohmann/json.hpp>

#include "checkpoint/ht_file.h"
#include "checkpoint/ht_json.h"
#include "halftone/error.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = halftone::HtFile::from_bytes(
        halftone::FileBytes::from_memory(std::as_bytes(std::span(data, size)), "fuzz.ht"));
    file.digest_matches();
    try {
      file.require_readable(/*verify=*/false);
    } catch (const halftone::Error&) {
    }
    file.layout_findings();
    const nlohmann::json document = file.metadata().json(halftone::ht::kTensorsKey);
    for (const auto& item : halftone::ht::elements(halftone::JsonCursor(document, "tensors"))) {
      try {
        const halftone::HtRecord record = halftone::record_of(item);
        if (halftone::record_json(record).dump().empty()) __builtin_trap();
        check_record(file, record);
      } catch (const halftone::Error&) {
      }
    }
  } catch (const halftone::Error&) {
  }
  return 0;
}
