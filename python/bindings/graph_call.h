// Calls of compiled graphs from Python: flat arguments in, a flat tuple out.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/graph_compiler.h"

namespace halftone::python {

/// A weight whose content is compiled in. It is the same at a call if it is the same tensor, with the same
/// memory, and no operator has written to it since. The handle is weak: the caller's model may go, and its
/// address cannot be taken by another tensor meanwhile.
class FrozenTensor {
 public:
  explicit FrozenTensor(const at::Tensor& tensor);
  bool is(const at::Tensor& tensor) const;            ///< the same tensor, whatever its content
  bool is_unchanged(const at::Tensor& tensor) const;  ///< and the same content
  bool expired() const { return tensor_.expired(); }

 private:
  c10::weak_intrusive_ptr<at::TensorImpl> tensor_;
  const void* data_;
  uint32_t version_;
};

/// A graph compiled with certain weights.
class CompiledVariant {
 public:
  /// `frozen`: (position among the arguments, tensor).
  CompiledVariant(std::shared_ptr<GraphModule> module, const CompileOptions& options,
                  const std::vector<std::pair<size_t, at::Tensor>>& frozen);
  /// The same with a compiler by name, which may be any that is registered.
  CompiledVariant(std::shared_ptr<GraphModule> module, const std::string& compiler,
                  const CompilerOptions& options, const std::vector<c10::IValue>& examples);

  bool fits(PyObject* args) const;
  /// Whether the same weights were compiled in, with whatever content.
  bool has_same_tensors(PyObject* args) const;
  bool expired() const;
  bool is_frozen(size_t position) const { return position < skip_.size() && skip_[position]; }
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;
  /// kUnsupported for variants of other compilers.
  const CompiledGraph& graph() const;
  const GraphModule& module() const { return *module_; }

 private:
  std::shared_ptr<GraphModule> module_;
  std::shared_ptr<const CompiledGraph> graph_;
  CompiledFunction function_;
  std::vector<std::pair<size_t, FrozenTensor>> frozen_;
  std::vector<bool> skip_;  ///< one for each argument up to the last frozen one
};

/// What dynamo calls. Arguments are tensors, numbers and None, in the order of the graph's placeholders.
///
/// `make(call, args)` gives a variant for arguments whose weights are those of none so far (it is its business
/// to add it to the call), or None: `eager(*args)` is called then. It must not hold the call: no garbage
/// collector sees through this object. Eager also runs calls where an argument that the graph writes to shares
/// memory with another one, since compiled graphs have them apart. The GIL guards the list of variants and is
/// released while one runs.
class CompiledCall {
 public:
  CompiledCall(py::object make, py::object eager, std::vector<size_t> written);

  py::object operator()(const py::args& args);
  /// At the front; takes the place of variants of the same weights, and of those whose weights are gone.
  void add(std::shared_ptr<const CompiledVariant> variant, const py::tuple& args);
  std::vector<std::shared_ptr<const CompiledVariant>> variants() const { return variants_; }
  int64_t eager_calls() const { return eager_calls_; }

 private:
  std::shared_ptr<const CompiledVariant> find(PyObject* args);
  bool shares_written_memory(PyObject* args) const;

  py::object make_;
  py::object eager_;
  std::vector<size_t> written_;
  std::vector<std::shared_ptr<const CompiledVariant>> variants_;  ///< the one used last first
  int64_t eager_calls_ = 0;
};

/// The arguments that are not compiled in.
std::vector<c10::IValue> call_inputs(PyObject* args, const CompiledVariant& variant);

}  // namespace halftone::python
