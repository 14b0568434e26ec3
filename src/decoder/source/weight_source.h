// Where a decoder's weights come from: a GGUF file or a folder of safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/safetensors/safetensors.h"
#include "decoder/source/config.h"

namespace halftone {

/// Tensors by name. Parts of a decoder are called as llama.cpp calls them ("attn_q"): one name for one thing in all
/// architectures.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// What the source calls a part, `kind` "weight" or "bias"; layer -1: a part of no layer. It need not be there.
  virtual std::string name_of(std::string_view part, std::string_view kind, int64_t layer = -1) const = 0;
  virtual std::optional<std::vector<int64_t>> try_shape(const std::string& name) const = 0;
  bool has(const std::string& name) const { return try_shape(name).has_value(); }
  /// In float32, in memory of its own. The name must be there.
  virtual at::Tensor read(const std::string& name) const = 0;
  /// Of all tensors that a decoder could ask for; not of those that only repeat what the config says.
  virtual std::vector<std::string> names() const = 0;
  /// Numbers of all tensors together; nothing if that overflows.
  virtual std::optional<int64_t> values() const = 0;
};

std::unique_ptr<WeightSource> gguf_weights(GgufReader file);
/// Under the names that transformers has for this architecture. kUnsupported if a tensor is neither F32 nor F16 nor BF16.
std::unique_ptr<WeightSource> folder_weights(SafetensorsFile file, const DecoderTraits& traits,
                                             FolderNaming naming);

}  // namespace halftone
