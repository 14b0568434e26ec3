// Reading numpy's files. The header is untrusted: it is parsed as the one literal that numpy writes, never as
// Python.
#include <algorithm>
#include <charconv>

#include "archive/bytes/byte_reader.h"
#include "archive/bytes/crc32.h"
#include "archive/bytes/inflate.h"
#include "archive/bytes/text.h"
#include "archive/numpy/numpy.h"
#include "archive/numpy/numpy_format.h"
#include "archive/zip/zip.h"

namespace halftone {
namespace {

constexpr size_t kLongestNpyHeader = size_t{64} << 10;
constexpr size_t kHighestNpyRank = 64;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Forwards over the text of a header.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  [[noreturn]] void fail_here(std::string_view what) const {
    fail(ErrorCode::kCorruptFile, "{}: header, character {}: {}", where_, position_, what);
  }

  /// Skips blanks; whether the next character is this one, which is then taken.
  bool take(char wanted) {
    skip_blanks();
    if (position_ == text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail_here(fmt::format("expected {}", wanted));
  }

  /// 'text' or "text"; escapes are nothing that numpy writes here.
  std::string_view quoted() {
    skip_blanks();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail_here("expected a string");
    const size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail_here("the string does not end");
    const std::string_view found = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return found;
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return value;
    }
    fail_here("expected True or False");
  }

  int64_t size() {
    skip_blanks();
    int64_t value = -1;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail_here("expected a size of 63 bits");
    position_ += static_cast<size_t>(end - begin);
    return value;
  }

  void expect_end() {
    skip_blanks();
    if (position_ != text_.size()) fail_here("expected the end");
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }

  std::string_view text_;
  std::string where_;
  size_t position_ = 0;
};

DType dtype_of(std::string_view descr, const std::string& where) {
  const char order = descr.empty() ? '\0' : descr.front();
  const std::string_view kind = descr.substr(std::min<size_t>(1, descr.size()));
  const auto found = std::find_if(numpy::kDtypes.begin(), numpy::kDtypes.end(),
                                  [&](const auto& row) { return row.second == kind; });
  if (kind.starts_with('O'))
    fail(ErrorCode::kUnsupported, "{}: holds Python objects (dtype object), which are never read", where);
  if (found == numpy::kDtypes.end())
    fail(ErrorCode::kUnsupported, "{}: dtype {} is not read: numbers and bool only", where,
         quote_text(descr));
  if (order == '>' && dtype_size(found->first) > 1)
    fail(ErrorCode::kUnsupported, "{}: big-endian numbers ({}) are not read", where, quote_text(descr));
  if (order != '<' && order != '=' && order != '|' && order != '>')
    fail(ErrorCode::kCorruptFile, "{}: dtype {} has no byte order", where, quote_text(descr));
  return found->first;
}

std::vector<int64_t> read_tuple(LiteralReader& reader) {
  std::vector<int64_t> sizes;
  reader.expect('(');
  while (!reader.take(')')) {
    if (sizes.size() == kHighestNpyRank) reader.fail_here(fmt::format("rank above {}", kHighestNpyRank));
    sizes.push_back(reader.size());
    if (reader.take(',')) continue;
    reader.expect(')');
    break;
  }
  return sizes;
}

NumpyArray parse_header(std::string_view text, const std::string& where) {
  LiteralReader reader(text, where);
  NumpyArray array;
  bool descr = false, order = false, shape = false;
  const auto once = [&](bool& seen) {
    if (seen) reader.fail_here("a key is there twice");
    seen = true;
  };
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string_view key = reader.quoted();
    reader.expect(':');
    if (key == "descr") {
      once(descr);
      if (reader.take('[')) fail(ErrorCode::kUnsupported, "{}: records are not read: numbers only", where);
      array.dtype = dtype_of(reader.quoted(), where);
    } else if (key == "fortran_order") {
      once(order);
      array.fortran_order = reader.boolean();
    } else if (key == "shape") {
      once(shape);
      array.shape = read_tuple(reader);
    } else {
      reader.fail_here("unknown key");
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  reader.expect_end();
  if (!descr || !order || !shape) reader.fail_here("descr, fortran_order or shape is missing");
  return array;
}

/// What stands before the header's text: magic, version, length.
constexpr size_t kNpyVersionEnd = 8;

size_t length_bytes(std::byte major, const std::string& file) {
  const auto version = std::to_integer<unsigned>(major);
  if (version < 1 || version > 3)
    fail(ErrorCode::kUnsupported, "{}: version {} of the .npy format is not read", file, version);
  return version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
}

size_t header_length(ByteReader& reader, size_t bytes, const std::string& file) {
  const size_t length = bytes == sizeof(uint16_t) ? reader.read<uint16_t>("header length")
                                                  : reader.read<uint32_t>("header length");
  if (length > kLongestNpyHeader)
    fail(ErrorCode::kCorruptFile, "{}: a header of {} bytes, more than {}", file, length, kLongestNpyHeader);
  return length;
}

uint64_t data_bytes(const NumpyArray& array, const std::string& file) {
  const auto size = tensor_bytes(array.shape, array.dtype);
  if (!size) fail(ErrorCode::kCorruptFile, "{}: its shape overflows", file);
  return static_cast<uint64_t>(*size);
}

void check_data(const NumpyArray& array, uint64_t there, const std::string& file) {
  const uint64_t wanted = data_bytes(array, file);
  if (wanted != there)
    fail(ErrorCode::kCorruptFile, "{}: dtype and shape give {} bytes of data, there are {}", file, wanted,
         there);
}

/// Reads deflated data and counts them.
class InflatedReader {
 public:
  InflatedReader(const ZipMember& member, const std::string& file)
      : inflater_(member.bytes, file), size_(member.size), file_(file) {}

  /// Memory is taken as data come, not as somebody says that they will.
  std::vector<std::byte> read(uint64_t count) {
    constexpr uint64_t kFirst = uint64_t{1} << 20;
    std::vector<std::byte> bytes;
    while (bytes.size() < count) {
      const size_t begin = bytes.size();
      bytes.resize(begin + std::min<uint64_t>(count - begin, std::max<uint64_t>(kFirst, begin)));
      inflater_.read(std::span(bytes).subspan(begin));
    }
    crc_ = crc32(bytes, crc_);
    position_ += count;
    return bytes;
  }

  uint64_t left() const { return size_ > position_ ? size_ - position_ : 0; }
  uint32_t finish() {
    if (position_ != size_)
      fail(ErrorCode::kCorruptFile, "{}: {} bytes, its container says {}", file_, position_, size_);
    inflater_.expect_end();
    return crc_;
  }

 private:
  Inflater inflater_;
  uint64_t size_, position_ = 0;
  uint32_t crc_ = 0;
  std::string file_;
};

NumpyArray read_deflated(const ZipReader& zip, const ZipMember& member, const std::string& file) {
  InflatedReader reader(member, file);
  const std::vector<std::byte> start = reader.read(kNpyVersionEnd);
  if (!is_npy(start)) fail(ErrorCode::kCorruptFile, "{}: not a .npy file", file);
  const size_t length_size = length_bytes(start[numpy::kMagic.size()], file);
  const std::vector<std::byte> length = reader.read(length_size);
  ByteReader length_reader(length, file);
  const std::vector<std::byte> header = reader.read(header_length(length_reader, length_size, file));
  NumpyArray array = parse_header(as_text(header), file);
  check_data(array, reader.left(), file);
  auto data = std::make_shared<std::vector<std::byte>>(reader.read(data_bytes(array, file)));
  zip.verify_crc(member, reader.finish());
  array.bytes = *data;
  array.owner = std::move(data);
  return array;
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return as_text(bytes).starts_with(numpy::kMagic);
}

bool is_zip(std::span<const std::byte> bytes) {
  return as_text(bytes).starts_with("PK\x03\x04");
}

NumpyArray read_npy(std::span<std::byte> bytes, const std::string& file) {
  if (!is_npy(bytes)) fail(ErrorCode::kCorruptFile, "{}: not a .npy file", file);
  ByteReader reader(bytes, file, numpy::kMagic.size());
  const size_t length_size = length_bytes(std::byte{reader.read<uint8_t>("version")}, file);
  reader.read<uint8_t>("version");
  const size_t length = header_length(reader, length_size, file);
  NumpyArray array = parse_header(reader.read_text(length, "header"), file);
  array.bytes = bytes.subspan(reader.position());
  check_data(array, array.bytes.size(), file);
  return array;
}

std::vector<NumpyArray> read_npz(std::span<std::byte> bytes, const std::string& file) {
  const ZipReader zip(bytes, file, ZipMethods::kStoredAndDeflated);
  std::vector<NumpyArray> arrays;
  for (const ZipMember& member : zip.members()) {
    if (!member.name.ends_with(numpy::kExtension))
      fail(ErrorCode::kUnsupported, "{}: member {} is no array: a model or a file of torch.save, not .npz",
           file, quote_text(member.name));
    const std::string where = fmt::format("{}: {}", file, member.name);
    if (!member.deflated) zip.verify_crc(member);
    arrays.push_back(member.deflated ? read_deflated(zip, member, where) : read_npy(member.bytes, where));
    arrays.back().name = member.name.substr(0, member.name.size() - numpy::kExtension.size());
  }
  return arrays;
}

}  // namespace halftone
