// Opening a GGUF file: header, metadata, descriptions of the tensors, and where their bytes are. Every number
// is checked before it is used.
#include <algorithm>
#include <bit>
#include <numeric>

#include "archive/bytes/text.h"
#include "archive/gguf/gguf_blocks.h"
#include "archive/gguf/gguf_format.h"
#include "base/checked.h"
#include "halftone/cli/text_file.h"

namespace halftone {
namespace {

constexpr uint64_t kShortestEntry = 8 + 1 + 4 + 1;       // key of a letter, type, value of a byte
constexpr uint64_t kShortestTensor = 8 + 1 + 4 + 4 + 8;  // name of a letter, rank, type, offset

/// Places in `items`, in the order of their names.
template <typename Item, typename Name>
std::vector<uint32_t> sorted_places(const std::vector<Item>& items, Name name) {
  std::vector<uint32_t> places(items.size());
  std::iota(places.begin(), places.end(), 0U);
  std::sort(places.begin(), places.end(),
            [&](uint32_t a, uint32_t b) { return name(items[a]) < name(items[b]); });
  return places;
}

/// Sizes and type give values and bytes; nothing if they overflow 63 bits, zeros counted as ones.
bool compute_size(GgufTensor& tensor, const GgmlFormat* format, int64_t& bytes) {
  std::array<int64_t, 4> counted = tensor.sizes;
  for (int64_t& size : counted) size = std::max<int64_t>(size, 1);
  const auto values = checked_product<int64_t>(counted);
  if (!values) return false;
  const bool empty = std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end();
  tensor.values = empty ? 0 : *values;
  if (format == nullptr) return true;
  const auto product =
      checked_mul(tensor.values / static_cast<int64_t>(format->values), static_cast<int64_t>(format->bytes));
  bytes = product.value_or(0);
  return product.has_value();
}

}  // namespace

class GgufParser {
 public:
  explicit GgufParser(std::shared_ptr<FileBytes> file)
      : name_(file->name()), in_(file->bytes(), name_), bytes_(file->bytes()) {
    result_.file_ = std::move(file);
  }

  GgufReader parse() {
    read_header();
    for (uint64_t i = 0; i < entries_; ++i) read_entry();
    index_metadata();
    read_alignment();
    for (uint64_t i = 0; i < tensors_; ++i) read_tensor();
    index_tensors();
    find_data();
    check_overlaps();
    return std::move(result_);
  }

 private:
  void read_header() {
    const std::string_view head(reinterpret_cast<const char*>(bytes_.data()),
                                std::min<size_t>(bytes_.size(), 16));
    if (head.starts_with(kGgufMagicBigEndian)) fail_big_endian();
    if (!head.starts_with(kGgufMagic))
      fail(ErrorCode::kCorruptFile, "{}: not a GGUF file: this is {}", name_, file_kind(head));
    in_.read<uint32_t>("magic");
    result_.version_ = in_.read<uint32_t>("version");
    if (result_.version_ != 0 && (result_.version_ & 0xFFFFU) == 0) fail_big_endian();
    if (result_.version_ == 1) {
      fail(ErrorCode::kUnsupported,
           "{}: GGUF version 1 is not read, versions 2 and 3 are: convert the original model again, with a "
           "current llama.cpp",
           name_);
    }
    if (result_.version_ < 2 || result_.version_ > 3) {
      fail(ErrorCode::kUnsupported, "{}: GGUF version {} is not read, versions 2 and 3 are", name_,
           result_.version_);
    }
    tensors_ = in_.read<uint64_t>("number of tensors");
    entries_ = in_.read<uint64_t>("number of metadata entries");
    check_count(tensors_, kShortestTensor, "tensors");
    check_count(entries_, kShortestEntry, "metadata entries");
    result_.metadata_.reserve(entries_);
    result_.tensors_.reserve(tensors_);
  }

  [[noreturn]] void fail_big_endian() const {
    fail(ErrorCode::kUnsupported,
         "{}: a big-endian GGUF file, which is not read: `gguf-convert-endian FILE little` of the Python "
         "package gguf converts it",
         name_);
  }

  void check_count(uint64_t count, uint64_t shortest, std::string_view what) const {
    if (count > kGgufMostEntries)
      fail(ErrorCode::kCorruptFile, "{}: {} {}; at most {} are read", name_, count, what, kGgufMostEntries);
    if (count > in_.left() / shortest) {
      fail(ErrorCode::kCorruptFile, "{}: {} {} do not fit into the {} bytes that follow the header", name_,
           count, what, in_.left());
    }
  }

  /// A key or a name: it goes into messages and tables, so it must be text.
  std::string_view read_name(size_t longest, std::string_view what) {
    const size_t position = in_.position();
    const auto length = in_.read<uint64_t>(fmt::format("length of {}", what));
    if (length == 0) fail(ErrorCode::kCorruptFile, "{}: byte {}: {} is empty", name_, position, what);
    if (length > longest) {
      fail(ErrorCode::kCorruptFile, "{}: byte {}: {} has {} bytes; at most {} are read", name_, position,
           what, length, longest);
    }
    const std::string_view text = in_.read_text(static_cast<size_t>(length), what);
    if (!is_utf8(text)) {
      fail(ErrorCode::kCorruptFile, "{}: byte {}: {} {} is not UTF-8", name_, position, what,
           quote_text(text));
    }
    return text;
  }

  void read_entry() {
    const std::string_view key = read_name(kGgufLongestKey, "a key");
    const std::string where = fmt::format("{}: metadata {}", name_, quote_text(key));
    ByteReader in(bytes_, where, in_.position());
    const auto type = static_cast<GgufValueType>(in.read<uint32_t>("type of the value"));
    result_.metadata_.push_back({key, GgufValueReader(in, where).read(type)});
    in_ = ByteReader(bytes_, name_, in.position());
  }

  void index_metadata() {
    result_.by_key_ = sorted_places(result_.metadata_, [](const GgufEntry& entry) { return entry.key; });
    const auto twice = std::adjacent_find(
        result_.by_key_.begin(), result_.by_key_.end(),
        [&](uint32_t a, uint32_t b) { return result_.metadata_[a].key == result_.metadata_[b].key; });
    if (twice != result_.by_key_.end()) {
      fail(ErrorCode::kCorruptFile, "{}: metadata {} stands twice", name_,
           quote_text(result_.metadata_[*twice].key));
    }
  }

  void read_alignment() {
    result_.alignment_ = kGgufDefaultAlignment;
    const GgufValue* value = result_.try_value(kGgufAlignmentKey);
    if (value == nullptr) return;
    if (value->type() != GgufValueType::kUint32)
      fail(ErrorCode::kCorruptFile, "{}: metadata \"{}\" is {}, expected uint32", name_, kGgufAlignmentKey,
           value->describe_type());
    result_.alignment_ = value->try_uint().value_or(0);
    if (!std::has_single_bit(result_.alignment_) || result_.alignment_ < kGgufLowestAlignment ||
        result_.alignment_ > kGgufHighestAlignment) {
      fail(ErrorCode::kCorruptFile, "{}: metadata \"{}\" is {}, no power of two from {} to {}", name_,
           kGgufAlignmentKey, result_.alignment_, kGgufLowestAlignment, kGgufHighestAlignment);
    }
  }

  void read_tensor() {
    GgufTensor tensor;
    tensor.name = read_name(kGgufLongestName, "a tensor's name");
    const auto rank = in_.read<uint32_t>("number of a tensor's dimensions");
    if (rank > kGgufHighestRank)
      fail_tensor(tensor, fmt::format("has {} dimensions; at most {} are allowed", rank, kGgufHighestRank));
    tensor.rank = rank;
    for (size_t i = 0; i < rank; ++i) {
      const auto size = in_.read<uint64_t>("dimension of a tensor");
      if (!std::in_range<int64_t>(size)) fail_tensor(tensor, fmt::format("has a dimension of {}", size));
      tensor.sizes[i] = static_cast<int64_t>(size);
    }
    tensor.type = in_.read<uint32_t>("type of a tensor");
    tensor.offset =
        in_.read<uint64_t>("offset of a tensor");  // in the data; find_data() makes it one in the file
    result_.tensors_.push_back(tensor);
  }

  void index_tensors() {
    result_.by_name_ = sorted_places(result_.tensors_, [](const GgufTensor& tensor) { return tensor.name; });
    const auto twice = std::adjacent_find(
        result_.by_name_.begin(), result_.by_name_.end(),
        [&](uint32_t a, uint32_t b) { return result_.tensors_[a].name == result_.tensors_[b].name; });
    if (twice != result_.by_name_.end()) fail_tensor(result_.tensors_[*twice], "stands twice");
  }

  /// The data begin at the next multiple of the alignment. A file without tensors may end before it.
  void find_data() {
    const uint64_t end = in_.position();
    const uint64_t mask = result_.alignment_ - 1;
    result_.data_offset_ = std::min<uint64_t>((end + mask) & ~mask, bytes_.size());
    for (GgufTensor& tensor : result_.tensors_) place(tensor);
  }

  void place(GgufTensor& tensor) const {
    const GgmlFormat* format = try_ggml_format(tensor.type);
    tensor.has_known_size = format != nullptr;
    if (format != nullptr && tensor.sizes[0] % static_cast<int64_t>(format->values) != 0) {
      fail_tensor(tensor, fmt::format("has rows of {} values, and {} has blocks of {}", tensor.sizes[0],
                                      format->name, format->values));
    }
    int64_t size = 0;
    if (!compute_size(tensor, format, size)) fail_tensor(tensor, "has sizes whose product overflows");
    if (tensor.offset % result_.alignment_ != 0) {
      fail_tensor(tensor, fmt::format("begins at {} of the data, no multiple of the alignment {}",
                                      tensor.offset, result_.alignment_));
    }
    const uint64_t left = bytes_.size() - result_.data_offset_;
    if (tensor.offset > left || static_cast<uint64_t>(size) > left - tensor.offset) {
      fail_tensor(tensor, fmt::format("has {} bytes from {} of the data on; the data have {}", size,
                                      tensor.offset, left));
    }
    tensor.offset += result_.data_offset_;
    tensor.bytes = bytes_.subspan(static_cast<size_t>(tensor.offset), static_cast<size_t>(size));
  }

  /// No byte has two owners. A tensor of unknown type has at least one, unless it has no values.
  void check_overlaps() const {
    const auto end = [](const GgufTensor& tensor) {
      const bool some = !tensor.has_known_size && tensor.values > 0;
      return tensor.offset + (some ? 1 : tensor.bytes.size());
    };
    std::vector<const GgufTensor*> order;
    order.reserve(result_.tensors_.size());
    for (const GgufTensor& tensor : result_.tensors_) {
      if (end(tensor) > tensor.offset) order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i]->offset >= end(*order[i - 1])) continue;
      fail_tensor(*order[i],
                  fmt::format("begins at byte {}, inside of {}, which ends at {}", order[i]->offset,
                              quote_text(order[i - 1]->name), end(*order[i - 1])));
    }
  }

  [[noreturn]] void fail_tensor(const GgufTensor& tensor, std::string_view what) const {
    fail(ErrorCode::kCorruptFile, "{}: tensor {} {}", name_, quote_text(tensor.name), what);
  }

  const std::string& name_;  ///< the file's
  ByteReader in_;
  std::span<std::byte> bytes_;
  GgufReader result_;
  uint64_t tensors_ = 0;
  uint64_t entries_ = 0;
};

GgufReader GgufReader::from_bytes(std::shared_ptr<FileBytes> bytes) {
  return GgufParser(std::move(bytes)).parse();
}

GgufReader GgufReader::open(const std::string& path, LoadMode mode) {
  return from_bytes(FileBytes::open(path, mode));
}

}  // namespace halftone
