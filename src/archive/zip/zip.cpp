#include "archive/zip/zip.h"

#include <algorithm>
#include <numeric>

#include "archive/bytes/crc32.h"
#include "archive/bytes/inflate.h"
#include "archive/bytes/text.h"
#include "archive/zip/zip_records.h"
#include "base/errors.h"

namespace halftone {
namespace {

using zip::Entry;
using zip::Extent;

/// Why a name could harm programs that extract the member or compare names; empty for a good one.
std::string_view objection_to_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.front() == '/') return "is an absolute path";
  if (name.find('\\') != std::string_view::npos) return "has a backslash";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control)) return "has a control character";
  if (!is_utf8(name)) return "is not UTF-8";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return "has a \"..\" component";
    if (part == ".") return "has a \".\" component";
    // The one empty component allowed is after the final slash of a directory entry.
    if (part.empty() && end != name.size()) return "has an empty component";
    begin = end + 1;
  }
  return {};
}

constexpr uint16_t kDeflate = 8;

/// What deflated data can give at most is known; a claim beyond it is none that memory is taken for.
void check_sizes(const Entry& entry, const std::string& file) {
  if (entry.method == 0 && entry.size != entry.compressed_size) {
    fail(ErrorCode::kCorruptFile, "{}: member {} is stored, but its sizes differ: {} and {}", file,
         quote_text(entry.name), entry.compressed_size, entry.size);
  }
  if (entry.method == kDeflate && entry.size / kMaxInflated > entry.compressed_size) {
    fail(ErrorCode::kCorruptFile, "{}: member {}: {} deflated bytes cannot give {}", file,
         quote_text(entry.name), entry.compressed_size, entry.size);
  }
}

void check_entry(const Entry& entry, ZipMethods methods, const std::string& file) {
  if (const auto objection = objection_to_name(entry.name); !objection.empty()) {
    fail(ErrorCode::kCorruptFile, "{}: member name {} {}", file, quote_text(entry.name), objection);
  }
  if ((entry.flags & (zip::kEncrypted | zip::kStrongEncryption | zip::kMaskedDirectory)) != 0) {
    fail(ErrorCode::kUnsupported, "{}: member {} is encrypted", file, quote_text(entry.name));
  }
  const bool deflate = methods == ZipMethods::kStoredAndDeflated;
  if ((entry.method != 0 && !(deflate && entry.method == kDeflate)) || (entry.flags & zip::kPatched) != 0) {
    fail(ErrorCode::kUnsupported, "{}: member {} is compressed (method {}); only stored {}members are read",
         file, quote_text(entry.name), entry.method, deflate ? "and deflated " : "");
  }
  check_sizes(entry, file);
  if (entry.name.back() == '/' && entry.size != 0) {
    fail(ErrorCode::kCorruptFile, "{}: directory entry {} has {} bytes of data", file, quote_text(entry.name),
         entry.size);
  }
}

void check_overlaps(const std::vector<Entry>& entries, const std::vector<Extent>& extents,
                    const std::string& file) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return extents[a].begin < extents[b].begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (extents[order[i]].begin < extents[order[i - 1]].end) {
      fail(ErrorCode::kCorruptFile, "{}: members {} and {} overlap at byte {}", file,
           quote_text(entries[order[i - 1]].name), quote_text(entries[order[i]].name),
           extents[order[i]].begin);
    }
  }
}

bool name_less(const ZipMember& a, const ZipMember& b) {
  return a.name < b.name;
}

}  // namespace

ZipReader::ZipReader(std::span<std::byte> bytes, std::string file, ZipMethods methods)
    : file_(std::move(file)) {
  const zip::Directory directory = zip::find_directory(bytes, file_);
  const std::vector<Entry> entries = zip::read_entries(bytes, directory, file_);
  std::vector<Extent> extents;
  extents.reserve(entries.size());
  members_.reserve(entries.size());
  for (const Entry& entry : entries) {
    check_entry(entry, methods, file_);
    extents.push_back(zip::locate(bytes, entry, directory.begin, file_));
    members_.push_back({entry.name, bytes.subspan(extents.back().data, entry.compressed_size), entry.crc32,
                        entry.method == kDeflate, entry.size});
  }
  check_overlaps(entries, extents, file_);
  std::sort(members_.begin(), members_.end(), name_less);
  const auto same = [](const ZipMember& a, const ZipMember& b) { return a.name == b.name; };
  const auto twin = std::adjacent_find(members_.begin(), members_.end(), same);
  if (twin != members_.end()) {
    fail(ErrorCode::kCorruptFile, "{}: member {} is there twice", file_, quote_text(twin->name));
  }
}

const ZipMember* ZipReader::try_member(std::string_view name) const {
  const auto found =
      std::lower_bound(members_.begin(), members_.end(), name,
                       [](const ZipMember& member, std::string_view key) { return member.name < key; });
  return found != members_.end() && found->name == name ? &*found : nullptr;
}

const ZipMember& ZipReader::member(std::string_view name) const {
  const ZipMember* found = try_member(name);
  if (found == nullptr) fail(ErrorCode::kCorruptFile, "{}: member {} is missing", file_, quote_text(name));
  return *found;
}

void ZipReader::verify_crc(const ZipMember& member) const {
  verify_crc(member, halftone::crc32(member.bytes));
}

void ZipReader::verify_crc(const ZipMember& member, uint32_t computed) const {
  if (computed != member.crc32) {
    fail(ErrorCode::kCorruptFile, "{}: member {}: checksum {:08x} of its bytes is not the recorded {:08x}",
         file_, quote_text(member.name), computed, member.crc32);
  }
}

}  // namespace halftone
