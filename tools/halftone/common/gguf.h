// halftone inspect and halftone verify of a GGUF file.
#pragma once

#include <string>

namespace halftone::cli {

class Console;

struct GgufOptions {
  std::string path;
  bool json = false;
  bool tensors = false;  ///< inspect: list every tensor (JSON always does)
  bool fast = false;     ///< verify: the metadata only
};

/// Model, types of the tensors, metadata.
void inspect_gguf(const GgufOptions& options, Console& console);

/// Says what was found; throws kCorruptFile with the findings if there are any.
void verify_gguf(const GgufOptions& options, Console& console);

}  // namespace halftone::cli
