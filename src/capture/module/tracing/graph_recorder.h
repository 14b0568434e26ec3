// The graph while it is being traced: nodes are appended, and remembered with what they depend on.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/module/tracing/module_tensors.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// What a value was computed from.
struct Origin {
  bool data = false;        ///< from inputs, parameters or buffers: it may differ in the next call
  bool activation = false;  ///< from inputs
  /// Whose parameters and buffers alone it was computed from; nullptr: none, or several. One of the names of
  /// ModuleTensors: there are many values and few layers.
  const std::string* layer = nullptr;
};

/// Appends to a graph. C++ modules have no hooks: a node belongs to the layer whose parameters it reads or,
/// inside a CaptureScope, at least to that layer; the rest is settled by attribute_layers() when all nodes
/// are there.
class GraphRecorder {
 public:
  GraphRecorder(Graph& graph, const ModuleTensors& names) : graph_(graph), names_(names) {}

  Graph& graph() { return graph_; }
  Value* add_input(const at::Tensor& tensor, InputKind kind, std::string target, const std::string* layer);
  /// A user input that is not a tensor.
  Value* add_input(OutputSpec spec, std::string target);

  /// Outputs as the call gave them, one spec each.
  Node* append(std::string_view target, std::vector<NamedArgument> inputs, std::vector<OutputSpec> outputs);
  /// A node that the model did not run: its single output's metadata comes from running it without data.
  Value* derive(std::string_view target, std::vector<NamedArgument> inputs);
  /// The elements of a list value.
  const std::vector<Value*>& unpack(Value* list, const std::vector<at::Tensor>& elements);

  const Origin& origin(const Value* value) const { return origins_.at(value); }
  bool depends_on_data(const std::vector<NamedArgument>& inputs) const;

  /// The layer whose parameters or buffers are among the operands; nullptr if none are.
  const std::string* layer_read_by(const std::vector<NamedArgument>& inputs) const;
  const ModuleTensors& names() const { return names_; }
  /// The layer that runs, as far as it can be told: "layer \"fc\"", or where the last parameters were read.
  std::string place(const std::vector<NamedArgument>& inputs = {}) const;
  /// Gives every node its source. Nodes that read no parameters get the innermost layer that holds both the
  /// layer before and the layer after them.
  void attribute_layers();

  void enter_scope(const torch::nn::Module* module);
  void leave_scope();

 private:
  Origin origin_of(const std::vector<NamedArgument>& inputs) const;
  Graph& graph_;
  const ModuleTensors& names_;
  std::unordered_map<const Value*, Origin> origins_;
  std::unordered_map<const Node*, const std::string*>
      layers_;  ///< of nodes that read parameters or stand in a scope
  std::unordered_map<const Value*, std::vector<Value*>> unpacked_;
  std::vector<const std::string*> scopes_;  ///< nullptr: outside of every layer that is known
  const std::string* last_layer_ = nullptr;
};

}  // namespace halftone
