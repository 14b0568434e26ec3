// The small types of the export schema (numbers of enums, sizes, tensor metadata) read from JSON.
#pragma once

#include <ATen/core/ivalue.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "graph/checks/allowed_operators.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// What reading one file needs to know everywhere.
struct Pt2Context {
  std::string file;  ///< for messages
  int64_t schema_minor = 0;
  std::vector<std::string> notes;  ///< for GraphModule::notes
  int unknown_sizes = 0;           ///< sizes whose expression could not be read, so far
  std::vector<UnsupportedNode> unsupported;
  bool plain_autocast_dtypes = false;  ///< the exporter recorded dtypes inside autocast as if it were off
};

/// The newest minor version of schema 8 that this code was written for.
constexpr int64_t kKnownSchemaMajor = 8;
constexpr int64_t kKnownSchemaMinor = 20;

/// Refuses keys that the schema does not have: what is not known must not be ignored. kCorruptFile, or
/// kUnsupported if the file's schema is newer than this program.
void require_known_keys(const Pt2Context& context, const JsonCursor& object,
                        std::initializer_list<std::string_view> known);

/// The only key of a union and its value.
std::pair<std::string, JsonCursor> read_union(const JsonCursor& cursor);
/// Refuses a union's tag, as require_known_keys does.
[[noreturn]] void refuse_tag(const Pt2Context& context, const JsonCursor& cursor, std::string_view tag);

c10::ScalarType read_scalar_type(const JsonCursor& cursor);
c10::Layout read_layout(const JsonCursor& cursor);
c10::MemoryFormat read_memory_format(const JsonCursor& cursor);
c10::Device read_device(const JsonCursor& cursor);

/// A SymInt, SymBool or SymFloat of the file's value tables; nothing if the expression cannot be read, and
/// for floats.
std::optional<SymExpr> try_read_symbolic(const Pt2Context& context, const JsonCursor& cursor);

/// Sizes that cannot be read become fresh symbols (`unknown_0`, …), strides that cannot be read are left out.
TensorMeta read_tensor_meta(Pt2Context& context, const JsonCursor& cursor);

/// A tensor that is in the file: everything is a number. Checked: rank, signs.
struct StoredTensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;  ///< in elements
};
StoredTensorMeta read_stored_tensor_meta(const Pt2Context& context, const JsonCursor& cursor);

}  // namespace halftone
