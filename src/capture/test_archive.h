// For tests: takes a .pt2 apart into its members, and writes members back as a container with right
// checksums.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "archive/bytes/crc32.h"
#include "archive/bytes/file_bytes.h"
#include "archive/zip/zip.h"

namespace halftone::test {

/// Name below the root folder → bytes.
using Members = std::map<std::string, std::string>;

inline Members read_members(const std::string& path) {
  const auto bytes = FileBytes::open(path, LoadMode::kRead);
  const ZipReader zip(bytes->bytes(), path);
  Members members;
  for (const ZipMember& member : zip.members()) {
    const std::string name = member.name.substr(member.name.find('/') + 1);
    members[name] = std::string(reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size());
  }
  return members;
}

class ContainerWriter {
 public:
  /// Payloads start `skew` bytes behind a multiple of 64; torch's start at one.
  explicit ContainerWriter(size_t skew = 0) : skew_(skew) {}

  void add(const std::string& name, const std::string& data) {
    const uint32_t crc = crc32(std::as_bytes(std::span(data)));
    const auto offset = static_cast<uint32_t>(out_.size());
    // torch aligns payloads by an extra field of the local header.
    const size_t start = out_.size() + 30 + name.size() + 4;
    const size_t padding = (64 + skew_ - start % 64) % 64;
    put32(0x04034b50);
    put_common(name, data, crc, static_cast<uint16_t>(4 + padding));
    out_ += name;
    put16(0x4246);
    put16(static_cast<uint16_t>(padding));
    out_ += std::string(padding, 'Z') + data;
    std::swap(out_, directory_);
    put32(0x02014b50);
    put16(0);
    put_common(name, data, crc, 0);
    put16(0), put16(0), put16(0), put32(0), put32(offset);
    out_ += name;
    std::swap(out_, directory_);
    ++count_;
  }

  std::string finish() {
    const auto offset = static_cast<uint32_t>(out_.size());
    out_ += directory_;
    put32(0x06054b50);
    put16(0), put16(0), put16(count_), put16(count_);
    put32(static_cast<uint32_t>(directory_.size())), put32(offset), put16(0);
    return std::move(out_);
  }

 private:
  void put16(uint16_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put32(uint32_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  /// version, flags, method, time, date, crc, sizes, name length, extra length: the same in both headers.
  void put_common(const std::string& name, const std::string& data, uint32_t crc, uint16_t extra) {
    put16(0), put16(0), put16(0), put16(0), put16(0), put32(crc);
    put32(static_cast<uint32_t>(data.size())), put32(static_cast<uint32_t>(data.size()));
    put16(static_cast<uint16_t>(name.size())), put16(extra);
  }

  size_t skew_;
  std::string out_;
  std::string directory_;
  uint16_t count_ = 0;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void write_members(const std::string& path, const Members& members, size_t skew = 0) {
  ContainerWriter writer(skew);
  for (const auto& [name, data] : members)
    writer.add(name.starts_with("/") ? name.substr(1) : "small/" + name, data);
  write_file(path, writer.finish());
}

}  // namespace halftone::test
