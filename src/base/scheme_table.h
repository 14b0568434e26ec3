// The one table of schemes: every name that a command takes or prints for a way to make a model low-bit, and
// what each component needs to know of it. It is data without torch, so that kernels, quant, tune, bench
// and the command line read the same entries.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halftone {

enum class SchemeKind {
  kConfig,      ///< a QuantConfig: quantize_() takes it
  kCalibrated,  ///< static int8: needs data
  kMeasured,    ///< autoquant: chooses among the configs
  kFile,        ///< keeps the 4-bit weights of a file: language models only
  kBackend,     ///< no scheme, but tune prints it beside schemes: here so that a refusal can say what it is
};

/// The operation of src/kernels that runs a linear of the scheme.
enum class SchemeKernel {
  kNone,
  kFp32Linear,
  kBf16Linear,
  kInt8Linear,
  kInt8WeightOnlyLinear,
  kInt4WeightOnlyLinear,
  kInt4DynamicLinear,
  kFp8Linear,
  kFp8DynamicLinear,
  kInt8Conv,  ///< static int8 runs linears as convolutions of kernel 1
};

struct SchemeEntry {
  std::array<std::string_view, 3> names;  ///< the short one first; "" where there are fewer
  SchemeKind kind = SchemeKind::kConfig;
  std::string_view config = "";    ///< kConfig: the type of the QuantConfig, which stands in files
  std::string_view fields = "{}";  ///< kConfig: those of its fields that differ from the default, JSON
  /// What follows the name in a refusal where only a config will do: what the scheme is, and the call and the
  /// command that do it.
  std::string_view instead = "";
  std::string_view weights = "kept";      ///< what becomes of them, for people
  std::string_view activations = "kept";  ///< likewise
  double bits_per_weight = 32;            ///< stored, scales included, in a layer of 4096 inputs
  SchemeKernel kernel = SchemeKernel::kNone;
  int activation_bits = 8;  ///< of int8 kernels
  int weight_bits = 8;      ///< of int8 kernels
  int group_size = 0;       ///< its default; 0: no groups, and no NAME:GROUP
  /// A name that only `halftone kernels` takes: elsewhere it is ambiguous.
  std::string_view kernels_name = "";
  bool in_tune = false;                ///< tune tries it unasked
  bool in_autoquant = false;           ///< autoquant tries it unasked
  int in_torchao = 0;                  ///< its place in the list of torchao's benchmark, from 1; 0: not there
  std::string_view torchao_name = "";  ///< its name there
};

/// In the order in which people should read them, and in which tune and autoquant try them.
std::span<const SchemeEntry> scheme_table();

/// The group sizes that NAME:GROUP takes.
std::span<const int> scheme_group_sizes();

/// A name as it was typed.
struct NamedScheme {
  const SchemeEntry* entry = nullptr;
  int group_size = 0;  ///< 0: the scheme's default
  /// The short name, with the group size where that is not the default: "int8dq", "int4wo:64".
  std::string name() const;
};

/// Every name of the table, and NAME:GROUP for schemes with groups.
std::optional<NamedScheme> try_scheme(std::string_view name);
/// kInvalidArgument with the nearest name and all known ones. A `kernels_name` is refused with what to say
/// instead of it.
NamedScheme named_scheme(std::string_view name);
/// As named_scheme(), of those entries that are a config; kUnsupported with the command that does it for the
/// others.
NamedScheme named_config(std::string_view name);

/// kUnsupported: the name that was typed, and the entry's `instead`.
[[noreturn]] void refuse_scheme(std::string_view name, const SchemeEntry& entry);

/// All names, entry by entry; NAME:GROUP is not among them.
std::vector<std::string> scheme_names();
/// Names of the five rows of torchao's benchmark, in its order: int8dynamic, int8weightonly, …
std::vector<std::string> torchao_scheme_names();

}  // namespace halftone
