// Opens a model's file: .pt2 and .ht alike, told apart by their content.
#pragma once

#include <memory>
#include <string>

#include "halftone/base/api.h"

namespace halftone {

class GraphModule;

/// How a file is read: a .pt2 (load_pt2), a .ht (load_checkpoint, load_module, load).
struct OpenOptions {
  bool map = true;  ///< map the file; false: read it, safe against a file that is truncated later
  /// Compare the checksums of all bytes: of a .ht on all cores, of a .pt2 the CRC-32 of each member. false:
  /// only the metadata of a .ht are checked, and weights that are not needed are not read.
  bool verify = true;
};

enum class ModelFileKind {
  kPt2,    ///< as torch.export.save writes it
  kHt,     ///< Halftone's own: save_checkpoint(), save()
  kGguf,   ///< llama.cpp's; open_model() does not read it yet, describe_gguf() does
  kOther,  ///< none of these
};

/// The first bytes decide. What they leave open (a file that is cut off, say) goes by the name's extension,
/// to the reader that knows best what is wrong with it. kNotFound, kIo; kInvalidArgument for a folder.
HALFTONE_API ModelFileKind model_file_kind(const std::string& path);

/// The model of a .pt2 or a .ht, which may have any name; of a saved backend its graph, as load_checkpoint()
/// gives it. Errors as load_pt2() and load_checkpoint() have them; kUnsupported for any other file, saying
/// what it seems to be.
HALFTONE_API std::shared_ptr<GraphModule> open_model(const std::string& path,
                                                     const OpenOptions& options = {});

}  // namespace halftone
