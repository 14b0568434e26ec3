// The names and numbers of .ht files, versions 1 and 2. docs/format.md explains them; a change there or here
// needs a new version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halftone::ht {

inline constexpr int kVersion = 2;  ///< that is written; all from 1 on are read
/// The oldest Halftone that reads what is written now.
inline const std::string kNeeds = "0.2.0";
/// Every tensor of the model begins at a multiple of this in the file, and so in memory.
inline constexpr size_t kAlignment = 64;

/// Names of stored tensors that begin so belong to the format; a model's own tensor of such a name is stored
/// under another.
inline constexpr std::string_view kReserved = "__halftone__.";
inline constexpr std::string_view kPadding = "__halftone__.pad.";
inline constexpr std::string_view kDigest = "__halftone__.sha256";
inline constexpr size_t kDigestSize = 32;
/// From version 2 on: a digest for each so many bytes, and one of these digests.
inline constexpr std::string_view kDigestTable = "__halftone__.digests";
inline constexpr size_t kChunk = size_t{4} << 20;

// Keys of the metadata. Everything from kTensors on is JSON.
inline const std::string kFormatKey = "halftone.format";
inline const std::string kWriterKey = "halftone.written_by";
inline const std::string kTorchKey = "halftone.torch";
inline const std::string kKindKey = "halftone.kind";
inline const std::string kGraphKey = "halftone.graph";
inline const std::string kTensorsKey = "halftone.tensors";
inline const std::string kQuantizedKey = "halftone.quantized";
inline const std::string kConfigsKey = "halftone.configs";
inline const std::string kCallKey = "halftone.call";
inline const std::string kRangesKey = "halftone.ranges";
inline const std::string kGuardsKey = "halftone.guards";
inline const std::string kSampleInputsKey = "halftone.sample_inputs";
inline const std::string kNotesKey = "halftone.notes";
inline const std::string kPackedKey = "halftone.packed";
// From version 2 on.
inline const std::string kNeedsKey = "halftone.needs";  // text
inline const std::string kBackendKey = "halftone.backend";
inline const std::string kTuningKey = "halftone.tuning";
inline const std::string kSamplesKey = "halftone.samples";

inline constexpr std::string_view kKeyPrefix = "halftone.";
inline constexpr size_t kKeysOfVersion1 = 14;
inline const std::array kKeys = {&kFormatKey,  &kWriterKey,       &kTorchKey,   &kKindKey,   &kGraphKey,
                                 &kTensorsKey, &kQuantizedKey,    &kConfigsKey, &kCallKey,   &kRangesKey,
                                 &kGuardsKey,  &kSampleInputsKey, &kNotesKey,   &kPackedKey, &kNeedsKey,
                                 &kBackendKey, &kTuningKey,       &kSamplesKey};

inline std::span<const std::string* const> keys_of(int64_t version) {
  return std::span(kKeys).first(version == 1 ? kKeysOfVersion1 : kKeys.size());
}

inline const std::string kGraphKind = "graph";
inline const std::string kModuleKind = "module";

}  // namespace halftone::ht
