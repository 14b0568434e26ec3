// The part of the metadata that every .ht has: who wrote it, and what it holds.
#pragma once

#include <map>
#include <string>

#include "checkpoint/container/ht_format.h"
#include "halftone/base/version.h"

namespace halftone {

inline std::map<std::string, std::string> version_metadata(const std::string& kind) {
  return {{ht::kWriterKey, std::string("halftone ") + version()},
          {ht::kTorchKey, torch_version()},
          {ht::kKindKey, kind},
          {"format", "pt"}};  // not ours: some readers of safetensors want to know whose tensors they are
}

}  // namespace halftone
