// Unstable: for the command line only, may change in any version.
// What a GGUF file says of itself, and whether it is sound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// All text is UTF-8: other bytes of the file are spelled out (`\xff`).
struct GgufDescription {
  struct Entry {
    std::string key;
    std::string type;  ///< "uint32", "array of 49152 string"
    /// The value as JSON. Of an array the first elements, of a long string its beginning; numbers that JSON
    /// does not have are "NaN", "Infinity" and "-Infinity".
    std::string json;
    bool whole = true;  ///< whether `json` has all of it
  };
  struct Tensor {
    std::string name;
    std::string type;            ///< "Q4_K", "type 99"
    std::vector<int64_t> shape;  ///< the last dimension varies fastest
    int64_t parameters = 0;
    int64_t bytes = 0;  ///< 0 where the type is not known
  };
  /// All tensors of one type.
  struct TypeTotal {
    std::string type;
    int64_t tensors = 0;
    int64_t parameters = 0;
    int64_t bytes = 0;
    bool readable = false;  ///< whether Halftone reads numbers of this type
  };

  int version = 0;
  int64_t file_bytes = 0;
  int64_t alignment = 0;
  int64_t parameters = 0;
  int64_t tensor_bytes = 0;

  // From the metadata; empty where the file does not say it, or not in the usual type.
  std::string architecture;
  std::string name;
  std::optional<int64_t> context_length;
  std::optional<int64_t> layers;
  std::optional<int64_t> heads;
  std::optional<int64_t> kv_heads;
  std::optional<int64_t> width;  ///< embedding_length
  std::optional<int64_t> feed_forward_length;
  std::optional<int64_t> vocabulary;  ///< tokens that are listed
  std::string tokenizer;              ///< "gpt2", "llama"
  bool has_chat_template = false;
  std::optional<int64_t> split_count;   ///< files that the model was split into, if more than one
  std::optional<int64_t> split_number;  ///< which of them this is, from 1 on

  std::vector<TypeTotal> types;  ///< those with most bytes first
  std::vector<Tensor> tensors;   ///< in the file's order
  std::vector<Entry> metadata;   ///< in the file's order
};

struct GgufCheck {
  GgufDescription description;
  std::string sha256;  ///< of the whole file; empty where the numbers were not looked at
  bool numbers_checked = false;
  std::vector<std::string> findings;  ///< empty: sound
};

/// Whether a file with these first bytes is a GGUF file, of whatever version and byte order.
HALFTONE_API bool is_gguf(std::string_view head);

/// Reads the metadata only. Throws kCorruptFile or kUnsupported for a file that is no GGUF file, that breaks the
/// format, or that has a version or byte order that is not read; kNotFound, kIo.
HALFTONE_API GgufDescription describe_gguf(const std::string& path);

/// As describe_gguf(), and what a reader need not refuse: bytes that belong to nothing, padding that is not zero,
/// metadata that contradict each other. With `numbers`, also every tensor of a readable type is computed and its
/// numbers must be finite.
HALFTONE_API GgufCheck check_gguf(const std::string& path, bool numbers);

}  // namespace halftone
