#include "graph/ir/text_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"

namespace halftone {
namespace {

using c10::ScalarType;

template <typename T>
using Names = std::pair<T, std::string_view>;

constexpr std::array kDtypes = {
    Names<ScalarType>{ScalarType::Float, "f32"},
    Names<ScalarType>{ScalarType::Double, "f64"},
    Names<ScalarType>{ScalarType::Half, "f16"},
    Names<ScalarType>{ScalarType::BFloat16, "bf16"},
    Names<ScalarType>{ScalarType::Bool, "bool"},
    Names<ScalarType>{ScalarType::Char, "i8"},
    Names<ScalarType>{ScalarType::Short, "i16"},
    Names<ScalarType>{ScalarType::Int, "i32"},
    Names<ScalarType>{ScalarType::Long, "i64"},
    Names<ScalarType>{ScalarType::Byte, "u8"},
    Names<ScalarType>{ScalarType::UInt16, "u16"},
    Names<ScalarType>{ScalarType::UInt32, "u32"},
    Names<ScalarType>{ScalarType::UInt64, "u64"},
    Names<ScalarType>{ScalarType::ComplexHalf, "c32"},
    Names<ScalarType>{ScalarType::ComplexFloat, "c64"},
    Names<ScalarType>{ScalarType::ComplexDouble, "c128"},
    Names<ScalarType>{ScalarType::Float8_e4m3fn, "f8e4m3"},
    Names<ScalarType>{ScalarType::Float8_e5m2, "f8e5m2"},
};

constexpr std::array kLayouts = {
    Names<c10::Layout>{c10::Layout::Strided, "strided"},
    Names<c10::Layout>{c10::Layout::Sparse, "sparse"},
    Names<c10::Layout>{c10::Layout::SparseCsr, "sparse_csr"},
    Names<c10::Layout>{c10::Layout::SparseCsc, "sparse_csc"},
    Names<c10::Layout>{c10::Layout::SparseBsr, "sparse_bsr"},
    Names<c10::Layout>{c10::Layout::SparseBsc, "sparse_bsc"},
    Names<c10::Layout>{c10::Layout::Mkldnn, "mkldnn"},
    Names<c10::Layout>{c10::Layout::Jagged, "jagged"},
};

constexpr std::array kMemoryFormats = {
    Names<c10::MemoryFormat>{c10::MemoryFormat::Contiguous, "contiguous"},
    Names<c10::MemoryFormat>{c10::MemoryFormat::Preserve, "preserve"},
    Names<c10::MemoryFormat>{c10::MemoryFormat::ChannelsLast, "channels_last"},
    Names<c10::MemoryFormat>{c10::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
};

template <typename T, size_t N>
std::string_view name_of(const std::array<Names<T>, N>& table, T value, std::string_view otherwise) {
  for (const auto& [key, name] : table) {
    if (key == value) return name;
  }
  return otherwise;
}

template <typename T, size_t N>
std::optional<T> find_name(const std::array<Names<T>, N>& table, std::string_view wanted) {
  for (const auto& [key, name] : table) {
    if (name == wanted) return key;
  }
  return std::nullopt;
}

// Length of the well-formed UTF-8 sequence at the beginning; 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : (lead & 0xF0) == 0xE0       ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last code point.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0)) return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90)) return 0;
  return length;
}

void append_list(std::string& out, const std::vector<SymExpr>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    out += items[i].to_string();
  }
}

}  // namespace

std::string_view dtype_name(ScalarType dtype) {
  return name_of(kDtypes, dtype, c10::toString(dtype));
}

std::optional<ScalarType> try_dtype(std::string_view name) {
  if (const auto found = find_name(kDtypes, name)) return found;
  for (int8_t i = 0; i < static_cast<int8_t>(ScalarType::NumOptions); ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    if (dtype != ScalarType::Undefined && dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::string_view layout_name(c10::Layout layout) {
  return name_of(kLayouts, layout, "unknown");
}
std::optional<c10::Layout> try_layout(std::string_view name) {
  return find_name(kLayouts, name);
}
std::string_view memory_format_name(c10::MemoryFormat format) {
  return name_of(kMemoryFormats, format, "unknown");
}
std::optional<c10::MemoryFormat> try_memory_format(std::string_view name) {
  return find_name(kMemoryFormats, name);
}

std::optional<std::vector<SymExpr>> contiguous_strides(const std::vector<SymExpr>& sizes) {
  std::vector<SymExpr> strides(sizes.size());
  int64_t constant = 1;
  std::vector<std::pair<std::string, SymExpr>> factors;  // by their text, sorted
  const auto multiply = [&](const SymExpr& factor) {
    if (const auto value = factor.as_constant()) {
      const auto product =
          checked_mul(constant, std::max<int64_t>(*value, 1));  // torch counts empty dimensions as 1
      constant = product.value_or(0);
      return product.has_value();
    }
    std::pair<std::string, SymExpr> entry(factor.to_string(), factor);
    const auto place = std::upper_bound(factors.begin(), factors.end(), entry,
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
    factors.insert(place, std::move(entry));
    return true;
  };
  for (size_t i = sizes.size(); i-- > 0;) {
    std::vector<SymExpr> product;
    if (constant != 1 || factors.empty()) product.emplace_back(constant);
    for (const auto& factor : factors) product.push_back(factor.second);
    try {
      strides[i] =
          product.size() == 1 ? product.front() : SymExpr::make(SymExpr::Op::kMul, std::move(product));
    } catch (const Error&) {
      return std::nullopt;  // larger than an expression may be
    }
    if (sizes[i].op() == SymExpr::Op::kMul && sizes[i].operands().front().as_constant().value_or(1) > 0) {
      for (const SymExpr& factor : sizes[i].operands()) {
        if (!multiply(factor)) return std::nullopt;
      }
    } else if (!multiply(sizes[i])) {
      return std::nullopt;
    }
  }
  return strides;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text.substr(i));
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.append(text, i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  out += '"';
}

void append_double(std::string& out, double value) {
  if (value != value) {
    out += "nan";
    return;
  }
  const std::string text = fmt::format("{}", value);
  out += text;
  if (text.find_first_of(".en") == std::string::npos) out += ".0";
}

bool is_plain_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

void append_value_name(std::string& out, std::string_view name) {
  out += '%';
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_plain_name_char)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_meta(std::string& out, const TensorMeta& meta) {
  out += dtype_name(meta.dtype);
  out += '[';
  append_list(out, meta.sizes);
  if (meta.strides.empty()) {
    if (!meta.sizes.empty()) out += "; ?";
  } else if (contiguous_strides(meta.sizes) != meta.strides) {
    out += "; ";
    append_list(out, meta.strides);
  }
  out += ']';
  if (meta.device != c10::Device(c10::DeviceType::CPU)) {
    out += " device:";
    out += meta.device.str();
  }
  if (meta.requires_grad) out += " grad";
}

void append_type(std::string& out, const Value& value) {
  if (value.type() == ValueType::kTensor && value.meta()) {
    append_meta(out, *value.meta());
    return;
  }
  out += to_string(value.type());
  const bool number = value.type() == ValueType::kInt || value.type() == ValueType::kFloat ||
                      value.type() == ValueType::kBool;
  if (number && value.expression()) {
    out += '(';
    out += value.expression()->to_string();
    out += ')';
  }
}

}  // namespace halftone
