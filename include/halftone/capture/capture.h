// Reads models from .pt2 files into GraphModules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/capture/open_model.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

using LoadOptions = OpenOptions;  ///< its old name

/// Reads what torch.export.save of torch 2.13 to 2.15 writes. No Python, no code from the file. kNotFound,
/// kIo, kCorruptFile with file and place; kUnsupported with every node that cannot be run and its layer.
HALFTONE_API std::shared_ptr<GraphModule> load_pt2(const std::string& path, const OpenOptions& options = {});

/// A node of a file that cannot be run here, and why.
struct RefusedNode {
  std::string name;
  std::string target;
  std::string layer;
  std::string reason;
};

/// What a .pt2 file says of itself. There is no graph in it: nothing of it can be run, rewritten or saved.
struct Pt2Description {
  struct Tensor {
    std::string name;
    std::optional<TensorMeta> meta;  ///< nothing for numbers and None
  };
  struct Operator {
    std::string layer;
    std::string target;
    int64_t count = 0;
  };
  std::vector<Tensor> inputs;       ///< of the user
  std::vector<Tensor> outputs;      ///< by the names of the file's graph
  std::vector<Tensor> tensors;      ///< parameters, buffers, constants
  std::vector<Operator> operators;  ///< in the order of the file, each once a layer
  std::vector<RefusedNode> refused;
};

/// Reads the description alone, of models too whose operators are unknown or refused: no kernel is looked
/// for, no weight is touched. Errors as load_pt2(), but for such operators.
HALFTONE_API Pt2Description describe_pt2(const std::string& path);

/// Loads a shared library that registers custom operators. It is code: call it only for libraries that you
/// trust. Graphs from files may call its operators from then on.
HALFTONE_API void load_operator_library(const std::string& path);

/// Graphs from files may call a fixed list of operators (docs/operators.md), Halftone's own, and what the
/// caller allows: with this, those of a namespace that the program itself registered ("torchvision"), as many
/// as there are now. kNotFound if there are none; kInvalidArgument for aten and inductor, whose operators can
/// do more than compute.
HALFTONE_API void allow_operators(std::string_view name_space);

}  // namespace halftone
