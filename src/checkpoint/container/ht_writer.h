// Writing the container of .ht files: alignment, checksum, atomic replacement. Without torch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "archive/safetensors/safetensors.h"

namespace halftone {

/// Writes the tensors in the given order, padding between them, and the digest. Adds the format's version to
/// the metadata. The same content gives the same bytes. kIo, kNotFound (no such folder), kInvalidArgument.
void write_ht(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
              std::map<std::string, std::string> metadata);

}  // namespace halftone
