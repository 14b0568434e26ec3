#include "model_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "halftone/capture.h"
#include "halftone/checkpoint.h"
#include "halftone/error.h"
#include "halftone/limits.h"
#include "halftone/text_file.h"

namespace halftone::cli {

namespace {

enum class FileKind { kPt2, kHalftone, kOther };

constexpr size_t kHead = 4096;  // the metadata stand first in a .ht: its keys are there

/// A safetensors header behind its length, with Halftone's own keys.
bool is_checkpoint(std::string_view head) {
  return head.size() > 8 && head[8] == '{' && head.find("\"halftone.") != std::string_view::npos;
}

/// The content decides. What has no content that we know goes by its extension to the reader that knows best
/// what is wrong with it.
FileKind kind_of(const std::string& path, std::string_view head) {
  if (head.starts_with("PK\x03\x04")) return FileKind::kPt2;
  if (is_checkpoint(head)) return FileKind::kHalftone;
  if (const auto kind = file_kind(head); kind != kUnknownFileKind && kind != "a safetensors file")
    return FileKind::kOther;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".pt2") return FileKind::kPt2;
  return extension == ".ht" ? FileKind::kHalftone : FileKind::kOther;
}

std::string guess(std::string_view head) {
  const std::string kind(file_kind(head));
  const bool weights = kind == "a safetensors file" || kind == "a Python pickle";
  return weights ? kind + ": weights without a graph" : kind;
}

}  // namespace

bool is_checkpoint_file(const std::string& path) {
  return kind_of(path, read_file_start(path, kHead)) == FileKind::kHalftone;
}

bool is_exported_file(const std::string& path) {
  return kind_of(path, read_file_start(path, kHead)) == FileKind::kPt2;
}

void prepare_to_open(const ModelOptions& options) {
  const std::string& path = options.path;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such file", path));
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: is a directory, not a model's file", path));
  }
  for (const std::string& library : options.libraries) load_operator_library(library);
  if (options.max_steps > 0) set_max_steps(options.max_steps);
}

std::shared_ptr<GraphModule> open_model(const ModelOptions& options) {
  prepare_to_open(options);
  const std::string& path = options.path;
  const std::string head = read_file_start(path, kHead);
  switch (kind_of(path, head)) {
    case FileKind::kPt2:
      return load_pt2(path, {.map_weights = options.map});
    case FileKind::kHalftone:
      return load_checkpoint(path, {.map = options.map});
    case FileKind::kOther:
      break;
  }
  throw Error(ErrorCode::kUnsupported, fmt::format("{}: not a model: this is {}. Halftone reads .pt2 files, "
                                                   "which torch.export.save writes, and its own .ht files",
                                                   path, guess(head)));
}

}  // namespace halftone::cli
