// The container of a .pt2 file: which members it has, and the tensors that lie in them.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "archive/bytes/file_bytes.h"
#include "archive/zip/zip.h"
#include "base/json.h"
#include "capture/pt2_types.h"
#include "halftone/capture/capture.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

class Pt2Archive {
 public:
  /// Checks that the file is a little-endian .pt2 with exactly one exported model.
  Pt2Archive(const std::string& path, const OpenOptions& options);

  const std::string& file() const { return file_; }
  const std::string& model_name() const { return model_name_; }
  const std::shared_ptr<FileBytes>& bytes() const { return bytes_; }

  /// A member by its path below the root folder, its checksum verified; nullptr if there is none.
  const ZipMember* try_member(std::string_view path) const;
  /// kCorruptFile if there is none.
  const ZipMember& member(std::string_view path) const;
  /// "file: member", which stands before messages about it.
  std::string place(std::string_view path) const;
  nlohmann::json json_member(std::string_view path) const;

  std::string model_path() const { return "models/" + model_name_ + ".json"; }
  std::string sample_inputs_path() const { return "data/sample_inputs/" + model_name_ + ".pt"; }

  /// Parameters and buffers; tensor constants and non-persistent buffers. The tensors lie in the file's
  /// bytes, which they keep alive; names that share a payload share storage.
  TensorMap load_weights(const Pt2Context& context) const;
  TensorMap load_constants(const Pt2Context& context) const;

 private:
  void find_root();
  void check_header() const;
  void find_model();
  std::string text_member(std::string_view path) const;
  TensorMap load_payloads(const Pt2Context& context, const std::string& folder,
                          const std::string& config) const;

  std::string file_;
  std::shared_ptr<FileBytes> bytes_;
  ZipReader zip_;
  std::string root_;  // with a slash at its end
  std::string model_name_;
  bool verify_;
};

}  // namespace halftone
