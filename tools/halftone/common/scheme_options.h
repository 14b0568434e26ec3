// The options that name a scheme and choose layers, shared by quantize and diagnose; and what a scheme's name
// stands for.
#pragma once

#include <string>
#include <vector>

#include "halftone/quant/quantize.h"

namespace CLI {
class App;
}

namespace halftone::cli {

struct SchemeOptions {
  std::string scheme;
  int group_size = 0;   ///< 0: the scheme's own
  int weight_bits = 0;  ///< likewise
  std::string include;
  std::string exclude;
  std::vector<std::string> overrides;  ///< "REGEX=SCHEME"
  int64_t min_weights = 0;
  bool embeddings = false;
};

/// A scheme's name, or a config as JSON: {"type": …}. UsageError where it is unknown, or no config.
QuantConfig parse_scheme(const std::string& text);

/// Puts --scheme, --group-size, --weight-bits, --include, --exclude, --override, --min-weights and
/// --embeddings on a subcommand.
void add_scheme_options(CLI::App& command, SchemeOptions& options);

/// UsageError for an unknown scheme, for a scheme that has no such field, and for what the field does not
/// take.
QuantConfig config_of(const SchemeOptions& options);
/// Without progress and dry run.
QuantizeOptions layers_of(const SchemeOptions& options);

}  // namespace halftone::cli
