// Graphs made from Python, node by node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "halftone/graph/graph_module.h"

namespace halftone::python {

/// A value of a graph that is being made. Python may keep it for longer than the graph: `graph` says whether
/// it is still there.
struct BuilderValue {
  Value* value = nullptr;
  std::weak_ptr<Graph> graph;

  const std::string& name() const;
};

/// What Python knows of a value, as a tuple: (name, type, dtype, sizes, strides, expression). Sizes are
/// numbers or texts of expressions; None: not known.
OutputSpec to_output_spec(const py::handle& tuple);

/// Makes one graph, or a subgraph of it. Not thread-safe.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) : name_(std::move(name)), graph_(std::make_shared<Graph>()) {}

  /// `tensor`: of inputs that are no user inputs; it is shared, not copied.
  BuilderValue add_input(const py::handle& spec, const std::string& kind, const std::string& target,
                         std::optional<at::Tensor> tensor);
  /// `inputs`: pairs of the schema's name ("" for built-ins) and the operand.
  std::vector<BuilderValue> append(const std::string& target, const py::list& inputs, const py::list& outputs,
                                   const std::string& layer, const std::string& module_type);
  /// `kinds`: pairs of kind and target, one for each value.
  void set_outputs(const py::list& values, const std::vector<std::pair<std::string, std::string>>& kinds);
  void set_range(const std::string& symbol, int64_t min, std::optional<int64_t> max);
  void add_guard(const std::string& condition);
  /// The text form, of what is there so far.
  std::string text() const;
  /// Checks the graph and gives it away. Arguments and results are flat.
  std::shared_ptr<GraphModule> finish();
  /// The same for a subgraph, as an operand of cond, while_loop, map and scan.
  std::shared_ptr<Graph> subgraph();

 private:
  Graph& graph() const;
  Argument to_argument(const py::handle& object) const;

  std::string name_;
  std::shared_ptr<Graph> graph_;  // empty: given away
  TensorMap tensors_;
  std::map<std::string, SymbolRange> ranges_;
  std::vector<ShapeGuard> guards_;
};

}  // namespace halftone::python
