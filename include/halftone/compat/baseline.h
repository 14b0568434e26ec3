// setup_baseline(): the settings that PyTorch's torchao benchmarks recommend, as options of Halftone's own
// compiler. docs/baseline.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// Values that are passed to the compiling functions; never process-wide. The defaults are Halftone's own.
struct BaselineOptions {
  bool epilogue_fusion = true;            ///< activations and additions run inside the linear before them
  bool automatic_dynamic_shapes = false;  ///< a second size makes one graph for all sizes
  bool force_parameter_static_shapes =
      true;                               ///< a parameter with another size than at compile time is an error
  int64_t recompile_limit = 8;            ///< graphs that are kept for a module
  bool fuse_int_mm_with_mul = true;       ///< integer products are scaled inside the kernel
  bool mixed_mm = true;                   ///< weight-only products read the low-bit weights themselves
  bool search_kernel_parameters = false;  ///< measures execution parameters at the first call of each shape
  bool search_all_directions = false;     ///< that search tries combinations too, not one parameter at a time
  bool graph_cache = false;               ///< equal graphs are compiled once in a process
  bool readable_kernel_names = false;     ///< steps in profiles go by what they do and where
  bool operator==(const BaselineOptions&) const = default;
};

/// "default", "000", "001": the presets of the two versions of the file. kInvalidArgument with the nearest
/// name.
HALFTONE_API BaselineOptions setup_baseline(std::string_view preset);
HALFTONE_API std::vector<std::string> baseline_presets();

/// One option as text, for the command line: "recompile_limit=10000". kInvalidArgument with the nearest name
/// and for invalid values.
HALFTONE_API void set_baseline_option(BaselineOptions& options, std::string_view assignment);
struct BaselineOption {
  std::string name;
  std::string value;
  std::string what;  ///< what it means here
};
HALFTONE_API std::vector<BaselineOption> list_baseline_options(const BaselineOptions& options);
/// A table of at most 100 columns.
HALFTONE_API std::string describe_baseline(const BaselineOptions& options);

}  // namespace halftone
