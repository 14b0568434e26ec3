// AotAutograd: a model's forward and backward as graphs that any compiler may take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "halftone/autograd/decompositions.h"
#include "halftone/autograd/joint_graph.h"
#include "halftone/base/api.h"
#include "halftone/capture/capture_module.h"
#include "halftone/compile/graph_compiler.h"

namespace halftone {

/// A table, or a function that returns one; the function is called once, at the first use.
using Decompositions = std::variant<DecompositionTable, std::function<DecompositionTable()>>;

/// Where the graphs of each compilation are written.
struct GraphLog {
  bool to_log = false;  ///< as text, to the log (level info)
  std::string folder;   ///< as files NAME_N.joint.txt, NAME_N.forward.txt, …; empty: none
};

struct AotOptions {
  GraphCompiler fw_compiler;         ///< must be given; nop_compiler() runs graphs as they are
  GraphCompiler bw_compiler;         ///< empty: fw_compiler
  GraphCompiler inference_compiler;  ///< empty: fw_compiler
  PartitionFunction partition_fn;    ///< empty: default_partition
  Decompositions decompositions;
  /// Results are compared with what was traced (sizes, strides, types) at each call. Not set: only if
  /// fw_compiler is the one of nop_compiler().
  std::optional<bool> debug_assert;
  /// Not set: HALFTONE_LOG_GRAPHS decides: "log", or the name of a folder.
  std::optional<GraphLog> log;
  std::string name = "model";  ///< for messages and files
};

/// Runs a graph as it is, in the interpreter.
HALFTONE_API GraphCompiler nop_compiler();

/// A compiler built from other compilers: from a graph module and example inputs it makes an equivalent
/// function whose results are differentiable.
///
/// If an input or parameter requires grad (and grad mode is on), forward and backward are traced as one
/// joint graph through autograd's own formulas, split, and given to their compilers; backward at its first
/// use. Otherwise one inference graph goes to inference_compiler. The module's parameters are inputs of these
/// graphs: the function reads them at each call, and gradients reach them.
///
/// The function takes inputs of the examples' sizes, strides, types and need of gradients (kGuard otherwise)
/// and may be called from many threads, also backwards. Differentiating its gradients again is an error.
class HALFTONE_API AotAutograd {
 public:
  explicit AotAutograd(AotOptions options);

  /// `examples`: one for each user input, or nested as lists, tuples and dicts: then the function takes its
  /// inputs nested in the same way, and gives its results as the module's call would. Options that are
  /// unknown here (all are) are named in a warning and ignored.
  CompiledFunction operator()(const std::shared_ptr<GraphModule>& module,
                              const std::vector<c10::IValue>& examples,
                              const CompilerOptions& options = {}) const;
  /// The same for C++ code itself, without a capture before: what it does to autograd (functions with
  /// backwards of their own, parts without gradients) keeps its meaning. Arguments and result are nested as
  /// the model's are. The module must outlive the function.
  ForwardFunction operator()(torch::nn::Module& module, const ForwardFunction& forward,
                             const std::vector<c10::IValue>& examples,
                             const CompilerOptions& options = {}) const;

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;
};

/// Thrown by a compiler to make its caller start again: passed on, and not counted as a failure.
class HALFTONE_API RestartAnalysis : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Of all AotAutograds in the process.
struct AotCounters {
  int64_t total = 0;
  int64_t ok = 0;
  int64_t not_ok = 0;
  bool operator==(const AotCounters&) const = default;
};
HALFTONE_API AotCounters aot_counters();
HALFTONE_API void reset_aot_counters();

/// TorchScript for forward and backward, the min-cut partitioner, and the default decompositions on request.
HALFTONE_API AotOptions mem_efficient_fusion_options(bool use_decomps);

/// For a compiler that needs real inputs: it is given zeros for those that have no data.
HALFTONE_API GraphCompiler fake_tensor_unsupported(GraphCompiler compiler);

/// Of the first tensor; cpu and float32 if there is none.
HALFTONE_API c10::Device device_from_inputs(const std::vector<c10::IValue>& examples);
HALFTONE_API c10::ScalarType dtype_from_inputs(const std::vector<c10::IValue>& examples);

}  // namespace halftone
