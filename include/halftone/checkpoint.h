// .ht files: a model, quantized or not, as one safetensors file that every later version can load. Format:
// docs/format.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph_module.h"

namespace torch::nn {
class Module;
}

namespace halftone {

struct SaveOptions {
  bool packed =
      false;  ///< also the weights as this machine's kernels want them: larger file, faster first call
};

struct CheckpointOptions {
  bool map = true;     ///< map the file; false: read it, safe against a file that is truncated later
  bool verify = true;  ///< compare the SHA-256 of the whole file
};

/// Atomically: a reader sees the old file or the new one, also after a power cut. The same model gives the
/// same bytes.
void save_checkpoint(const GraphModule& module, const std::string& path, const SaveOptions& options = {});
/// kNotFound, kIo, kCorruptFile with file and place; kUnsupported where a newer version wrote it. `notes` of
/// the module say what was repacked.
std::shared_ptr<GraphModule> load_checkpoint(const std::string& path, const CheckpointOptions& options = {});

/// A C++ module's parameters and buffers, quantized ones as their plain parts.
void save_module(const torch::nn::Module& module, const std::string& path, const SaveOptions& options = {});
/// Into a module of the same shape, quantized or not: its weights become what the file holds, bit for bit. On
/// an error (kInvalidArgument, listing all differences) the module is as it was.
void load_module(torch::nn::Module& module, const std::string& path, const CheckpointOptions& options = {});

struct CheckpointInfo {
  int version = 0;
  std::string written_by;  ///< "halftone 0.1.0"
  std::string kind;        ///< "graph" or "module"
  std::string sha256;
  int64_t bytes = 0;
  size_t tensors = 0;                          ///< padding and checksum not counted
  std::map<std::string, std::string> configs;  ///< layer → canonical JSON of its config
  std::vector<std::string> findings;           ///< what is wrong, one sentence each; empty: the file is sound
};

/// Reads everything, believes nothing: checksum, format, versions, graph, configs. Throws only where the file
/// cannot be read or is no .ht at all.
CheckpointInfo verify_checkpoint(const std::string& path);

}  // namespace halftone
