// The limits of GGUF files that are read, and the reader of one metadata value.
#pragma once

#include "archive/bytes/byte_reader.h"
#include "archive/gguf/gguf.h"

namespace halftone {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::string_view kGgufMagicBigEndian = "FUGG";
constexpr std::string_view kGgufAlignmentKey = "general.alignment";
constexpr uint64_t kGgufDefaultAlignment = 32;
constexpr uint64_t kGgufLowestAlignment = 8;  // the format's own
constexpr uint64_t kGgufHighestAlignment = uint64_t{1} << 20;
constexpr size_t kGgufLongestKey = 65535;  // the format's own
// The format says 64; writers of image models have names of up to 127.
constexpr size_t kGgufLongestName = 255;
constexpr size_t kGgufLongestString = size_t{64} << 20;
constexpr uint32_t kGgufHighestRank = 4;  // the format's own
constexpr int kGgufDeepestArray = 8;
// Models of thousands of experts have some ten thousand tensors.
constexpr uint64_t kGgufMostEntries = 1'000'000;

/// Bytes of a number or a bool; 0 for strings, arrays, and numbers that are no type.
size_t gguf_value_size(GgufValueType type);

/// Reads one value and checks everything in it, arrays with all their elements. Errors are those of `in`, which
/// should be named after file and key.
class GgufValueReader {
 public:
  GgufValueReader(ByteReader& in, std::string_view where) : in_(in), where_(where) {}
  GgufValue read(GgufValueType type, int depth = 0);

 private:
  GgufValue read_array(int depth);
  void read_elements(const GgufValue& array, int depth);

  ByteReader& in_;
  std::string_view where_;
};

}  // namespace halftone
