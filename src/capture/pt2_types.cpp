#include "capture/pt2_types.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "capture/sympy.h"

namespace halftone {
namespace {

constexpr size_t kMaxRank = 64;

constexpr std::array kScalarTypes = {
    std::pair{1, c10::ScalarType::Byte},
    std::pair{2, c10::ScalarType::Char},
    std::pair{3, c10::ScalarType::Short},
    std::pair{4, c10::ScalarType::Int},
    std::pair{5, c10::ScalarType::Long},
    std::pair{6, c10::ScalarType::Half},
    std::pair{7, c10::ScalarType::Float},
    std::pair{8, c10::ScalarType::Double},
    std::pair{9, c10::ScalarType::ComplexHalf},
    std::pair{10, c10::ScalarType::ComplexFloat},
    std::pair{11, c10::ScalarType::ComplexDouble},
    std::pair{12, c10::ScalarType::Bool},
    std::pair{13, c10::ScalarType::BFloat16},
    std::pair{28, c10::ScalarType::UInt16},
    std::pair{29, c10::ScalarType::Float8_e4m3fn},
    std::pair{30, c10::ScalarType::Float8_e5m2},
    std::pair{31, c10::ScalarType::Float8_e4m3fnuz},
    std::pair{32, c10::ScalarType::Float8_e5m2fnuz},
    std::pair{33, c10::ScalarType::Float8_e8m0fnu},
    std::pair{34, c10::ScalarType::UInt32},
    std::pair{35, c10::ScalarType::UInt64},
};

constexpr std::array kLayouts = {
    std::pair{1, c10::Layout::Sparse},    std::pair{2, c10::Layout::SparseCsr},
    std::pair{3, c10::Layout::SparseCsc}, std::pair{4, c10::Layout::SparseBsr},
    std::pair{5, c10::Layout::SparseBsc}, std::pair{6, c10::Layout::Mkldnn},
    std::pair{7, c10::Layout::Strided},
};

constexpr std::array kMemoryFormats = {
    std::pair{1, c10::MemoryFormat::Contiguous},
    std::pair{2, c10::MemoryFormat::ChannelsLast},
    std::pair{3, c10::MemoryFormat::ChannelsLast3d},
    std::pair{4, c10::MemoryFormat::Preserve},
};

template <typename Table>
auto read_enum(const JsonCursor& cursor, const Table& table, std::string_view what) {
  const int64_t number = cursor.get_int();
  for (const auto& [known, value] : table) {
    if (known == number) return value;
  }
  cursor.fail_here(fmt::format("{} is no {}", number, what));
}

ErrorCode code_for_unknown(const Pt2Context& context) {
  return context.schema_minor > kKnownSchemaMinor ? ErrorCode::kUnsupported : ErrorCode::kCorruptFile;
}

std::string version_hint(const Pt2Context& context) {
  if (context.schema_minor <= kKnownSchemaMinor) return {};
  return fmt::format("; the file's schema is {}.{}, this program knows {}.{}", kKnownSchemaMajor,
                     context.schema_minor, kKnownSchemaMajor, kKnownSchemaMinor);
}

size_t read_rank(const JsonCursor& list) {
  if (!list.raw().is_array()) list.fail_here("expected an array");
  if (list.size() > kMaxRank) list.fail_here(fmt::format("rank {} is more than {}", list.size(), kMaxRank));
  return list.size();
}

void check_layout(const JsonCursor& meta) {
  if (const c10::Layout layout = read_layout(meta.at("layout")); layout != c10::Layout::Strided) {
    fail(ErrorCode::kUnsupported, "{}: tensors that are not strided are not supported", meta.path());
  }
}

void check_known_meta_keys(const Pt2Context& context, const JsonCursor& cursor) {
  require_known_keys(context, cursor,
                     {"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
}

}  // namespace

void require_known_keys(const Pt2Context& context, const JsonCursor& object,
                        std::initializer_list<std::string_view> known) {
  if (!object.raw().is_object()) object.fail_here("expected an object");
  for (const auto& item : object.raw().items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    fail(code_for_unknown(context), "{}: unknown key \"{}\"{}", object.path(), item.key(),
         version_hint(context));
  }
}

std::pair<std::string, JsonCursor> read_union(const JsonCursor& cursor) {
  if (!cursor.raw().is_object() || cursor.size() != 1) cursor.fail_here("expected an object with one key");
  std::string tag = cursor.raw().items().begin().key();
  JsonCursor value = cursor.at(tag);
  return {std::move(tag), std::move(value)};
}

void refuse_tag(const Pt2Context& context, const JsonCursor& cursor, std::string_view tag) {
  fail(code_for_unknown(context), "{}: unknown kind \"{}\"{}", cursor.path(), tag, version_hint(context));
}

c10::ScalarType read_scalar_type(const JsonCursor& cursor) {
  return read_enum(cursor, kScalarTypes, "element type");
}
c10::Layout read_layout(const JsonCursor& cursor) {
  return read_enum(cursor, kLayouts, "layout");
}
c10::MemoryFormat read_memory_format(const JsonCursor& cursor) {
  return read_enum(cursor, kMemoryFormats, "memory format");
}

c10::Device read_device(const JsonCursor& cursor) {
  const std::string type = cursor.at("type").get_string();
  if (cursor.has("index") && !cursor.at("index").is_null()) {
    const int64_t index = cursor.at("index").get_int();
    if (index < 0 || index > 127) cursor.fail_here(fmt::format("device index {}", index));
  }
  // One exporter's accelerator is no concern of a CPU program, but its graph holds that device in its
  // operands.
  if (type != "cpu" && type != "meta") {
    fail(ErrorCode::kUnsupported, "{}: the model was exported for device \"{}\"; export it on the CPU",
         cursor.path(), type);
  }
  return c10::Device(type == "cpu" ? c10::DeviceType::CPU : c10::DeviceType::Meta);
}

std::optional<SymExpr> try_read_symbolic(const Pt2Context& context, const JsonCursor& cursor) {
  const auto [tag, value] = read_union(cursor);
  if (tag == "as_int") return SymExpr(value.get_int());
  if (tag == "as_bool") return SymExpr(value.get_bool() ? 1 : 0);
  if (tag == "as_float") return value.get_double(), std::nullopt;
  if (tag == "as_expr") return try_parse_sympy(value.at("expr_str").get_string());
  refuse_tag(context, cursor, tag);
}

TensorMeta read_tensor_meta(Pt2Context& context, const JsonCursor& cursor) {
  check_known_meta_keys(context, cursor);
  check_layout(cursor);
  TensorMeta meta;
  meta.dtype = read_scalar_type(cursor.at("dtype"));
  meta.device = read_device(cursor.at("device"));
  meta.requires_grad = cursor.at("requires_grad").get_bool();
  const JsonCursor sizes = cursor.at("sizes");
  const size_t rank = read_rank(sizes);
  for (size_t i = 0; i < rank; ++i) {
    auto size = try_read_symbolic(context, sizes.at(i));
    if (size && size->as_constant().value_or(0) < 0) sizes.at(i).fail_here("negative size");
    if (!size) size = SymExpr::symbol(fmt::format("unknown_{}", context.unknown_sizes++));
    meta.sizes.push_back(std::move(*size));
  }
  const JsonCursor strides = cursor.at("strides");
  if (read_rank(strides) != rank)
    strides.fail_here(fmt::format("{} strides for {} sizes", strides.size(), rank));
  for (size_t i = 0; i < rank; ++i) {
    auto stride = try_read_symbolic(context, strides.at(i));
    if (stride && stride->as_constant().value_or(0) < 0) strides.at(i).fail_here("negative stride");
    if (!stride) return meta.strides.clear(), meta;
    meta.strides.push_back(std::move(*stride));
  }
  return meta;
}

StoredTensorMeta read_stored_tensor_meta(const Pt2Context& context, const JsonCursor& cursor) {
  check_known_meta_keys(context, cursor);
  check_layout(cursor);
  const auto number = [](const JsonCursor& size) {
    const auto [tag, value] = read_union(size);
    if (tag != "as_int") size.fail_here("a stored tensor needs sizes that are numbers");
    const int64_t result = value.get_int();
    if (result < 0) value.fail_here(fmt::format("negative number {}", result));
    return result;
  };
  StoredTensorMeta meta;
  meta.dtype = read_scalar_type(cursor.at("dtype"));
  read_device(cursor.at("device"));
  const JsonCursor sizes = cursor.at("sizes");
  const JsonCursor strides = cursor.at("strides");
  if (read_rank(sizes) != read_rank(strides)) strides.fail_here("as many strides as sizes are needed");
  for (size_t i = 0; i < sizes.size(); ++i) meta.sizes.push_back(number(sizes.at(i)));
  for (size_t i = 0; i < strides.size(); ++i) meta.strides.push_back(number(strides.at(i)));
  meta.offset = number(cursor.at("storage_offset"));
  return meta;
}

}  // namespace halftone
