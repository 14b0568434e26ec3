// The node of autograd's graph that stands for a compiled backward.
#pragma once

#include "autograd/aot_function.h"

namespace halftone {

/// Keeps what forward saved, as the nodes of torch's own formulas do: changes of it in place are found out,
/// it is freed after the first backward unless that retains the graph.
class AotNode : public torch::autograd::Node {
 public:
  AotNode(std::shared_ptr<const AotProgram> program, torch::autograd::edge_list edges)
      : Node(std::move(edges)), program_(std::move(program)) {}

  /// After the outputs got this node as their history: some of them may be saved.
  void save(std::vector<torch::autograd::SavedVariable> saved) { saved_ = std::move(saved); }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void release_variables() override;
  std::string name() const override { return "HalftoneAotBackward"; }

 private:
  std::vector<c10::IValue> take_saved();
  std::shared_ptr<const AotProgram> program_;
  std::vector<torch::autograd::SavedVariable> saved_;
};

}  // namespace halftone
