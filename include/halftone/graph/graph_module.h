// A graph with its parameters, buffers and constants; and the Session that runs it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph.h"
#include "halftone/graph/tree.h"

namespace halftone {

class InputCheck;
class GraphExecutor;

/// Qualified name → tensor.
using TensorMap = std::map<std::string, at::Tensor, std::less<>>;

/// How a model is called: the nesting of its arguments and result.
struct CallSpec {
  TreeSpec args;    ///< a tuple: the positional arguments
  TreeSpec kwargs;  ///< a dict: the keyword arguments
  TreeSpec result;
};

/// A condition on symbols that inputs must meet, with the text it was written in.
struct ShapeGuard {
  SymExpr condition;
  std::string text;
};

/// A captured model. Reading is thread-safe. Replacing tensors is thread-safe too: sessions that exist keep
/// the tensors they were made with. Changing the graph while sessions are made from it is not.
class HALFTONE_API GraphModule {
 public:
  GraphModule(std::unique_ptr<Graph> graph, TensorMap tensors, CallSpec call);
  ~GraphModule();

  /// A module of its own that shares the tensors: to try something out.
  std::shared_ptr<GraphModule> clone() const;
  /// Another graph with the same inputs and outputs, and its tensors; everything else is this module's.
  std::shared_ptr<GraphModule> with_graph(std::unique_ptr<Graph> graph, TensorMap tensors) const;
  /// A graph with other inputs or outputs: it is called with flat inputs and gives a flat tuple. Name, ranges
  /// and guards are this module's; samples and notes, which speak of its inputs, stay behind.
  std::shared_ptr<GraphModule> with_flat_graph(std::unique_ptr<Graph> graph, TensorMap tensors) const;

  const Graph& graph() const { return *graph_; }
  /// For passes. Sessions that exist keep the graph as it was when they were made.
  Graph& mutable_graph();

  std::shared_ptr<const TensorMap> tensors() const;
  at::Tensor tensor(std::string_view name) const;  ///< kNotFound, with the nearest name
  /// kNotFound if the name is unknown; kInvalidArgument if shape or dtype differ.
  void set_tensor(std::string_view name, at::Tensor tensor);
  /// Adds or replaces without a check; for passes that put new constants into the graph.
  void put_tensor(std::string name, at::Tensor tensor);
  /// For passes that took the last use of a tensor out of the graph. Nothing happens if the name is
  /// unknown.
  void erase_tensor(std::string_view name);
  /// Replaces the tensors that the file holds (safetensors, or the .index.json of a sharded one). Strict:
  /// every parameter and persistent buffer must be there and nothing else (kInvalidArgument, listing all
  /// differences). Returns how many were set.
  size_t load_tensors(const std::string& path, bool strict = true);

  const CallSpec& call_spec() const { return call_; }
  std::map<std::string, SymbolRange> ranges;  ///< of the symbols in input sizes
  std::vector<ShapeGuard> guards;
  std::vector<c10::IValue> sample_inputs;  ///< one for each user input of the graph, or empty
  std::string name;                        ///< for messages: usually the file's name
  std::vector<std::string> notes;          ///< notes of the reader for the user

  /// Names of the user inputs, in order.
  std::vector<std::string> input_names() const;
  /// Names of the user inputs that a call writes to, in order.
  std::vector<std::string> mutated_input_names() const;

 private:
  friend class Session;
  std::shared_ptr<const GraphExecutor> interpreter() const;
  std::shared_ptr<Graph> graph_;
  CallSpec call_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TensorMap> tensors_;
  mutable std::shared_ptr<const GraphExecutor> interpreter_;
};

/// Called after each node of the top graph: its outputs, and how long the node ran.
using NodeHook =
    std::function<void(const Node& node, const std::vector<c10::IValue>& outputs, double seconds)>;

/// The arguments of an executor for one call.
struct ExecutorCall {
  const std::vector<c10::IValue>& inputs;  ///< one for each user input
  const TensorMap& tensors;                ///< parameters, buffers and constants
  const TensorMap& state;                  ///< those that the model writes; used before `tensors`
  const SymbolBindings& bindings;          ///< of the symbols in the inputs' sizes
  const NodeHook* hook = nullptr;
};

/// Runs a graph: the interpreter, or the result of a backend. Thread-safe.
class HALFTONE_API GraphExecutor {
 public:
  virtual ~GraphExecutor() = default;
  /// One result for each output of graph(), mutations too.
  virtual std::vector<c10::IValue> run(const ExecutorCall& call) const = 0;
  /// Its user inputs, outputs and writes are those of the module's graph.
  virtual const Graph& graph() const = 0;
};

/// One stream of calls to a model. Holds the model's state (buffers that the graph mutates, such as a KV
/// cache) apart from the shared module; sessions are independent of each other. A call while another one runs
/// is refused (kState).
class HALFTONE_API Session {
 public:
  /// `executor`: runs the graph; nullptr: the interpreter.
  explicit Session(std::shared_ptr<const GraphModule> module,
                   std::shared_ptr<const GraphExecutor> executor = nullptr);
  ~Session();

  /// Calls the model as Python would: nested positional and keyword arguments in, nested result out. Inputs
  /// are checked against the graph's dtypes, sizes, ranges and guards (kGuard, naming input and dimension).
  /// Mutated inputs are written in place, as in eager; so is state, by compiled models, where that changes no
  /// result. A call that fails may have written a part of it. Runs without gradients, whatever the caller's mode.
  c10::IValue operator()(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs = {});
  /// The same with flat inputs (in the order of input_names()) and flat outputs.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs);

  /// State as it was at the beginning.
  void reset();
  /// Names of the buffers (or parameters) that the graph mutates, sorted.
  std::vector<std::string> state_names() const;
  /// The present value of one of them; kNotFound for others.
  at::Tensor state(std::string_view buffer) const;
  void set_node_hook(NodeHook hook);
  const GraphModule& module() const { return *module_; }

 private:
  std::shared_ptr<const GraphModule> module_;
  std::shared_ptr<const TensorMap> tensors_;
  std::shared_ptr<const GraphExecutor> executor_;
  std::unique_ptr<const InputCheck> input_check_;
  TensorMap state_;
  NodeHook hook_;
  std::atomic<bool> busy_{false};
};

}  // namespace halftone
