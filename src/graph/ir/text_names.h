// Words of the graph's text form that print and parse share: names of dtypes and the like, quoting,
// contiguous strides.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

/// "f32", "bf16", "i64", …; torch's own name if there is no short one ("QInt8").
std::string_view dtype_name(c10::ScalarType dtype);
std::optional<c10::ScalarType> try_dtype(std::string_view name);

/// "strided", "sparse", …
std::string_view layout_name(c10::Layout layout);
std::optional<c10::Layout> try_layout(std::string_view name);

/// "contiguous", "preserve", "channels_last", "channels_last_3d".
std::string_view memory_format_name(c10::MemoryFormat format);
std::optional<c10::MemoryFormat> try_memory_format(std::string_view name);

/// The strides of a row-major tensor, as the text form means them where it gives none: constants before
/// symbols, symbols in alphabetical order ("3*s0*s1"), which is how exported files write them. Nothing if
/// a product overflows.
std::optional<std::vector<SymExpr>> contiguous_strides(const std::vector<SymExpr>& sizes);

/// In quotes, with \" \\ \n \r \t and \xNN for other control characters and for bytes that are not UTF-8.
void append_quoted(std::string& out, std::string_view text);
/// A double that reads back as the same bits, always with one of . e inf nan, so that it is not an integer.
void append_double(std::string& out, double value);
/// %name, or %"odd name".
void append_value_name(std::string& out, std::string_view name);
/// Letters, digits, _ and .: what may follow a % without quotes.
bool is_plain_name_char(char c);
/// f32[2, s0] with strides, device and grad where they are not the usual ones.
void append_meta(std::string& out, const TensorMeta& meta);
/// The type of a value: append_meta, or tensor, int, int(2*s0), list, …
void append_type(std::string& out, const Value& value);

}  // namespace halftone
