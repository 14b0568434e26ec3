// Guesses the kind of a file, for messages about files that were given in the wrong place.
#include <algorithm>

#include "archive/safetensors/safetensors_format.h"
#include "halftone/cli/gguf.h"
#include "halftone/cli/text_file.h"

namespace halftone {

std::string_view file_kind(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.empty()) return "an empty file";
  if (head.starts_with("PK\x03\x04"))
    return "a zip file, as models (.pt2), files of torch.save and .npz files are";
  if (head.starts_with("\x93NUMPY")) return "an array of numpy (.npy)";
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return "a Python pickle";
  if (is_gguf(head)) return "a GGUF file";
  if (head.starts_with("\x7f"
                       "ELF"sv))
    return "a program or shared library";
  if (head.size() > kSafetensorsLengthSize && head[kSafetensorsLengthSize] == '{')
    return "a safetensors file";
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; };
  if (std::all_of(head.begin(), head.end(), is_text)) return "a text file";
  return kUnknownFileKind;
}

}  // namespace halftone
