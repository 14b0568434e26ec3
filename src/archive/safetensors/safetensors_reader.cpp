// Reading one safetensors file. The header is untrusted: every number in it is checked before it is used.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "archive/bytes/byte_reader.h"
#include "archive/safetensors/safetensors.h"
#include "archive/safetensors/safetensors_format.h"
#include "base/json.h"
#include "halftone/cli/text_file.h"

namespace halftone {
namespace {

using nlohmann::json;

constexpr size_t kHighestRank = 64;  // torch's own limit for most operators
constexpr std::string_view kMetadataKey = "__metadata__";

/// Element types that the format knows and this reader does not: a different answer than "corrupt".
constexpr std::array<std::string_view, 6> kUnreadDtypes = {"F4",      "F6_E2M3",     "F6_E3M2",
                                                           "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

/// One entry while it is checked: its range counts from the first byte after the header.
struct Described {
  std::string name;
  DType dtype{};
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

DType read_dtype(const JsonCursor& place) {
  const std::string name = place.get_string();
  if (const auto dtype = dtype_from_safetensors(name)) return *dtype;
  if (std::find(kUnreadDtypes.begin(), kUnreadDtypes.end(), name) != kUnreadDtypes.end()) {
    fail(ErrorCode::kUnsupported, "{}: element type \"{}\" is not read", place.path(), name);
  }
  place.fail_here(fmt::format("\"{}\" is no element type", name));
}

std::vector<int64_t> read_shape(const JsonCursor& place) {
  if (!place.raw().is_array()) place.fail_here("expected an array");
  if (place.size() > kHighestRank) {
    place.fail_here(fmt::format("rank {} is more than {}", place.size(), kHighestRank));
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < place.size(); ++i) {
    shape.push_back(place.at(i).get_int());
    if (shape.back() < 0) place.fail_here(fmt::format("dimension {} is negative: {}", i, shape.back()));
  }
  return shape;
}

Described read_description(const std::string& name, const JsonCursor& place) {
  Described tensor;
  tensor.name = name;
  tensor.dtype = read_dtype(place.at("dtype"));
  tensor.shape = read_shape(place.at("shape"));
  const JsonCursor offsets = place.at("data_offsets");
  if (!offsets.raw().is_array() || offsets.size() != 2)
    offsets.fail_here("expected an array of two integers");
  const int64_t begin = offsets.at(size_t{0}).get_int();
  const int64_t end = offsets.at(size_t{1}).get_int();
  if (begin < 0 || end < begin) offsets.fail_here(fmt::format("[{}, {}] is no range", begin, end));
  tensor.begin = static_cast<uint64_t>(begin);
  tensor.end = static_cast<uint64_t>(end);

  const auto size = tensor_bytes(tensor.shape, tensor.dtype);
  if (!size) place.fail_here("its shape overflows");
  if (static_cast<uint64_t>(*size) != tensor.end - tensor.begin) {
    place.fail_here(
        fmt::format("dtype and shape give {} bytes, data_offsets {}", *size, tensor.end - tensor.begin));
  }
  return tensor;
}

/// The ranges, taken in order, must cover the data exactly once: no byte without an owner, none with two.
void check_coverage(const std::vector<Described>& tensors, uint64_t data_size, const std::string& file) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(tensors[a].begin, tensors[a].end) < std::pair(tensors[b].begin, tensors[b].end);
  });
  uint64_t covered = 0;
  for (const size_t i : order) {
    const Described& tensor = tensors[i];
    if (tensor.begin != covered) {
      fail(ErrorCode::kCorruptFile, "{}: tensor \"{}\" starts at {} of the data, {} {}", file, tensor.name,
           tensor.begin, tensor.begin > covered ? "leaving a hole after" : "overlapping the one that ends at",
           covered);
    }
    if (tensor.end > data_size) {
      fail(ErrorCode::kCorruptFile, "{}: tensor \"{}\" ends at {}, past the end of the data at {}", file,
           tensor.name, tensor.end, data_size);
    }
    covered = tensor.end;
  }
  if (covered != data_size) {
    fail(ErrorCode::kCorruptFile, "{}: {} trailing bytes that belong to no tensor", file,
         data_size - covered);
  }
}

std::string_view read_header(std::span<const std::byte> bytes, const std::string& file) {
  ByteReader reader(bytes, file);
  const auto length = reader.read<uint64_t>("header length");
  if (length > kLongestSafetensorsHeader) {
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                                std::min<size_t>(bytes.size(), 16));
    fail(ErrorCode::kCorruptFile, "{}: header length {} is more than {}: not a safetensors file? This is {}",
         file, length, kLongestSafetensorsHeader, file_kind(head));
  }
  const auto text = reader.read_text(static_cast<size_t>(length), "header");
  if (text.empty() || text.front() != '{')
    fail(ErrorCode::kCorruptFile, "{}: header does not start with {{", file);
  return text;
}

}  // namespace

SafetensorsFile SafetensorsFile::from_bytes(std::shared_ptr<FileBytes> bytes) {
  const std::string& file = bytes->name();
  const std::string_view text = read_header(bytes->bytes(), file);
  const JsonLimits limits{.max_depth = 3, .max_bytes = kLongestSafetensorsHeader, .max_values = 5'000'000};
  const json document = parse_json(text, file + ": header", limits);
  const JsonCursor header(document, file + ": header");

  SafetensorsFile result;
  std::vector<Described> tensors;
  for (const std::string& name : header.keys()) {
    const JsonCursor place = header.at(name);
    if (name == kMetadataKey) {
      for (const std::string& key : place.keys()) result.metadata_.emplace(key, place.at(key).get_string());
    } else {
      tensors.push_back(read_description(name, place));
    }
  }
  const std::span<std::byte> data = bytes->bytes().subspan(kSafetensorsLengthSize + text.size());
  check_coverage(tensors, data.size(), file);
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  result.entries_.reserve(tensors.size());
  for (Described& tensor : tensors) {
    const auto range = data.subspan(tensor.begin, tensor.end - tensor.begin);
    result.entries_.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape), range, bytes});
  }
  return result;
}

SafetensorsFile SafetensorsFile::open(const std::string& path, LoadMode mode) {
  return from_bytes(FileBytes::open(path, mode));
}

const SafetensorsEntry* SafetensorsFile::try_entry(std::string_view name) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const SafetensorsEntry& entry, std::string_view key) { return entry.name < key; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace halftone
