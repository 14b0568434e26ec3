#include "decoder/source/memory_needed.h"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include "base/checked.h"
#include "base/errors.h"
#include "halftone/cli/table.h"

namespace halftone {

namespace {

/// The kernel's estimate of what programs may take without swapping; where there is none, all memory.
int64_t free_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kilobytes = 0;
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

void require_memory_for(const WeightSource& weights, const DecoderConfig& config, int64_t context) {
  constexpr int64_t kFloat = sizeof(float);
  std::optional<int64_t> needed = 0;
  const auto add = [&](std::optional<int64_t> values) {
    const auto bytes = values ? checked_mul(*values, kFloat) : std::nullopt;
    needed = needed && bytes ? checked_add(*needed, *bytes) : std::nullopt;
  };
  // Unpacked, before they are quantized; twice the cache: the module's own and a sequence's.
  add(weights.values());
  const int64_t factors[] = {4, config.layers, config.kv_heads, config.head_width, context};
  add(checked_product(std::span<const int64_t>(factors)));
  // Tables of rotary positions: two of them in float32, while they are made five in double precision.
  const int64_t tables[] = {12, static_cast<int64_t>(config.rotaries.size()), config.head_width, context};
  add(checked_product(std::span<const int64_t>(tables)));
  const int64_t available = free_bytes();
  if (needed && *needed <= available) return;
  fail(ErrorCode::kInvalidArgument,
       "{}: loading takes {} of memory ({} tensors as float32, and a KV cache of {} tokens), {} are free: "
       "choose a "
       "smaller context or model",
       config.file, needed ? describe_bytes(*needed) : "far too much", weights.names().size(), context,
       describe_bytes(available));
}

}  // namespace halftone
