// A folder as Hugging Face publishes language models: config.json, tokenizer.json, safetensors files. No torch.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "archive/safetensors/safetensors.h"

namespace halftone {

/// The files of one folder. No name and no link leads out of it, but for the links of Hugging Face's cache
/// ("snapshots/…/config.json" to "blobs/…"). Errors name the file: kNotFound, kUnsupported, kCorruptFile, kIo.
class ModelFolder {
 public:
  /// kNotFound if there is no config.json.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }
  std::string name() const;  ///< of the folder itself
  bool has(const std::string& file) const;
  std::string path_of(const std::string& file) const;  ///< kUnsupported if it is a link that leads out
  std::string text(const std::string& file) const;
  nlohmann::json json(const std::string& file) const;  ///< of bounded depth and size
  /// model.safetensors, or the files that model.safetensors.index.json names; each tensor stands in one of them, and all
  /// are in the index.
  SafetensorsFile tensors() const;

 private:
  std::string path_;
};

/// chat_template.jinja, or the template in tokenizer_config.json; empty if there is none.
std::string chat_template_of(const ModelFolder& folder);

}  // namespace halftone
