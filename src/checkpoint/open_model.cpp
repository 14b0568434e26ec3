#include "halftone/capture/open_model.h"

#include <filesystem>
#include <string_view>

#include "base/errors.h"
#include "halftone/capture/capture.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/gguf.h"
#include "halftone/cli/text_file.h"

namespace halftone {

namespace {

constexpr size_t kHeadBytes = 4096;  // the metadata stand first in a .ht: its keys are there

/// A safetensors header behind its length, with Halftone's own keys.
bool is_ht_head(std::string_view head) {
  return head.size() > 8 && head[8] == '{' && head.find("\"halftone.") != std::string_view::npos;
}

std::string model_file_head(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) fail(ErrorCode::kNotFound, "{}: no such file", path);
  if (std::filesystem::is_directory(path, ignored))
    fail(ErrorCode::kInvalidArgument, "{}: is a directory, not a model's file", path);
  return read_file_start(path, kHeadBytes);
}

ModelFileKind kind_of_head(const std::string& path, std::string_view head) {
  if (head.starts_with("PK\x03\x04")) return ModelFileKind::kPt2;
  if (is_ht_head(head)) return ModelFileKind::kHt;
  if (is_gguf(head)) return ModelFileKind::kGguf;
  if (const auto kind = file_kind(head); kind != kUnknownFileKind && kind != "a safetensors file")
    return ModelFileKind::kOther;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".pt2") return ModelFileKind::kPt2;
  return extension == ".ht" ? ModelFileKind::kHt : ModelFileKind::kOther;
}

std::string guess_of_head(std::string_view head) {
  const std::string kind(file_kind(head));
  const bool weights = kind == "a safetensors file" || kind == "a Python pickle";
  return weights ? kind + ": weights without a graph" : kind;
}

}  // namespace

ModelFileKind model_file_kind(const std::string& path) {
  return kind_of_head(path, model_file_head(path));
}

std::shared_ptr<GraphModule> open_model(const std::string& path, const OpenOptions& options) {
  const std::string head = model_file_head(path);
  switch (kind_of_head(path, head)) {
    case ModelFileKind::kPt2:
      return load_pt2(path, options);
    case ModelFileKind::kHt:
      return load_checkpoint(path, options);
    case ModelFileKind::kGguf:
      fail(ErrorCode::kUnsupported,
           "{}: a GGUF file. `halftone inspect` describes it and `halftone verify` checks it, `halftone "
           "generate` runs "
           "it; no other command reads GGUF files yet",
           path);
    case ModelFileKind::kOther:
      break;
  }
  fail(ErrorCode::kUnsupported,
       "{}: not a model: this is {}. Halftone reads .pt2 files, which torch.export.save writes, and its own "
       ".ht files",
       path, guess_of_head(head));
}

}  // namespace halftone
