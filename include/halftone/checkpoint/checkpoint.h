// .ht files: a model, quantized or not, as one safetensors file that every later version can load. Format:
// docs/format.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/capture/open_model.h"
#include "halftone/graph/graph_module.h"

namespace torch::nn {
class Module;
}

namespace halftone {

class Backend;  // backend.h

struct SaveOptions {
  bool packed =
      false;  ///< also the weights as this machine's kernels want them: larger file, faster first call
};

using CheckpointOptions = OpenOptions;  ///< its old name

/// Atomically: a reader sees the old file or the new one, also after a power cut. The same model gives the
/// same bytes.
HALFTONE_API void save_checkpoint(const GraphModule& module, const std::string& path,
                                  const SaveOptions& options = {});
/// kNotFound, kIo, kCorruptFile with file and place; kUnsupported if a newer version wrote it. `notes` of
/// the module say what was repacked.
HALFTONE_API std::shared_ptr<GraphModule> load_checkpoint(const std::string& path,
                                                          const OpenOptions& options = {});

/// A C++ module's parameters and buffers, quantized ones as their plain parts.
HALFTONE_API void save_module(const torch::nn::Module& module, const std::string& path,
                              const SaveOptions& options = {});
/// Into a module of the same shape, quantized or not: its weights become what the file holds, bit for bit. On
/// an error (kInvalidArgument, listing all differences) the module is as it was.
HALFTONE_API void load_module(torch::nn::Module& module, const std::string& path,
                              const OpenOptions& options = {});

struct SaveBackendOptions {
  bool packed = false;  ///< as in SaveOptions
  /// The model as it was before conversion: larger, but it can be converted anew, by to_dict() too.
  bool original = false;
  /// The content of the samples and of the graph's sample inputs; false: their shapes alone.
  bool sample_data = false;
};

/// A backend with its model, config, device, tuning record and samples, atomically. In every state but INIT
/// (kState). kUnsupported if its kind cannot be saved, and if the original is asked for and only the
/// converted model is there. In INACTIVE the model is converted anew for the file.
HALFTONE_API void save(const Backend& backend, const std::string& path,
                       const SaveBackendOptions& options = {});
/// In CHECKPOINT_LOADED: deploy() or activate() comes next. A file that save_checkpoint wrote becomes a
/// HalftoneBackend that takes the graph as it is, and the log says so. Samples without content come back as
/// tensors on the meta device. Errors as load_checkpoint's; kUnsupported also if the backend's type is not
/// registered in this process, or may not come from a file.
HALFTONE_API Backend load(const std::string& path, const OpenOptions& options = {});

struct CheckpointInfo {
  int version = 0;
  std::string written_by;  ///< "halftone 0.3.0"
  std::string needs;       ///< the oldest Halftone that reads it, "0.2.0"; empty in version 1
  std::string kind;        ///< "graph" or "module"
  std::string sha256;
  int64_t bytes = 0;
  size_t tensors = 0;                          ///< padding and checksum not counted
  size_t chunks = 0;                           ///< that have a checksum of their own; 0 in version 1
  std::map<std::string, std::string> configs;  ///< layer → canonical JSON of its config
  size_t static_int8_layers = 0;      ///< convolutions and linears of static int8, which have no config
  std::string backend;                ///< "QuantBackend(…)", and what follows; empty: no backend was saved
  std::string backend_config;         ///< JSON
  std::string device;                 ///< "cpu"
  std::string state;                  ///< when it was saved: "ACTIVE"
  std::string weights;                ///< "original" or "converted"
  std::string tuning;                 ///< JSON; empty: it was not tuned
  std::vector<std::string> samples;   ///< one line each: "F32[1, 128], mask=I64[1, 128]"
  bool bytes_checked = true;          ///< false: only the metadata were
  std::vector<std::string> findings;  ///< what is wrong, one sentence each; empty: the file is sound
};

enum class VerifyDepth {
  kEverything,  ///< reads every byte
  kMetadata,    ///< neither weights nor checksums: fast, and blind to damage in them
};

/// Verifies everything: checksums, format, versions, graph, configs, backend. Throws only if the file cannot
/// be read or is not a .ht at all.
HALFTONE_API CheckpointInfo verify_checkpoint(const std::string& path,
                                              VerifyDepth depth = VerifyDepth::kEverything);

}  // namespace halftone
