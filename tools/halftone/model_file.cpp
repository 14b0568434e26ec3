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

FileKind kind_of(const std::string& path, std::string_view head) {
  const std::string extension = std::filesystem::path(path).extension().string();
  // A .pt2 with a broken head goes to its reader too, which knows best what is wrong with it.
  if (extension == ".pt2") return FileKind::kPt2;
  if (extension == ".ht") return FileKind::kHalftone;
  return head.starts_with("PK\x03\x04") ? FileKind::kPt2 : FileKind::kOther;
}

std::string_view guess(const std::string& path, std::string_view head) {
  if (head.empty()) return "an empty file";
  if (std::filesystem::path(path).extension() == ".safetensors")
    return "a safetensors file: weights without a graph";
  if (head.starts_with("\x80\x02")) return "a Python pickle: weights without a graph";
  if (head.starts_with("GGUF")) return "a GGUF file";
  if (head.starts_with("\x7F"
                       "ELF"))
    return "a program or shared library";
  return "a file of an unknown kind";
}

}  // namespace

std::shared_ptr<GraphModule> open_model(const ModelOptions& options) {
  const std::string& path = options.path;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Error(ErrorCode::kNotFound, fmt::format("{}: no such file", path));
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: is a directory, not a model's file", path));
  }
  for (const std::string& library : options.libraries) load_operator_library(library);
  if (options.max_steps > 0) set_max_steps(options.max_steps);
  const std::string head = read_file_start(path, 16);
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
                                                   path, guess(path, head)));
}

}  // namespace halftone::cli
