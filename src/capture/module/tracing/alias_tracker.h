// Maps each tensor of the running model to its value in the graph, through views and writes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/module/tracing/graph_recorder.h"
#include "capture/module/tracing/module_tensors.h"
#include "capture/module/tracing/snapshots.h"
#include "capture/module/tracing/views.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// The model really runs, and really writes to its tensors; the graph has no writes. So this class keeps, for
/// each storage, the value of its present content. A write gives the storage's base a new value, and views of
/// it that are older are made again from that when they are read. Tensors are known by identity and, because
/// torch copies handles behind the dispatcher's back (detach, autograd), by storage and geometry. What is
/// unknown existed before the capture: a parameter or buffer, or else a constant.
class AliasTracker {
 public:
  AliasTracker(GraphRecorder& recorder, const ModuleTensors& names, MemorySnapshots& snapshots)
      : recorder_(recorder), names_(names), snapshots_(snapshots) {}

  void add_user_input(const at::Tensor& tensor, std::string name);
  /// The value of the tensor's present content.
  Value* value_of(const at::Tensor& tensor);

  /// The tensor is what a node gave. `call` is the node, for tensors that share memory with one of
  /// `operands`.
  struct MadeBy {
    std::string_view target;
    const std::vector<NamedArgument>& inputs;
    const std::vector<at::Tensor>& operands;
    bool uninitialised = false;
  };
  void bind(const at::Tensor& tensor, Value* value, const MadeBy& call);
  /// The tensor's present content becomes a constant of the graph.
  void bind_constant(const at::Tensor& tensor);
  /// Before memory is written that existed before the capture.
  void keep(const at::Tensor& tensor);
  /// The tensor's content was replaced by what `value` stands for.
  void write(const at::Tensor& tensor, Value* value);
  /// `to` was made to show what `from` shows (set_data).
  void rebind(const at::Tensor& to, const at::Tensor& from);

  /// Inputs of the graph that were written, with the value of their last content.
  struct Mutation {
    size_t input = 0;
    Value* value = nullptr;
  };
  std::vector<Mutation> mutations() const;
  /// The input of the graph whose memory the tensor shows; nothing for memory that the model made.
  std::optional<size_t> try_input_of(const at::Tensor& tensor);
  /// Refuses writes past the dispatcher to buffers and inputs.
  void check_memory();
  const TensorMap& tensors() const { return tensors_; }

 private:
  struct Memory;
  struct Entry {
    Memory* memory = nullptr;
    Geometry geometry;
    Entry* parent = nullptr;  ///< of views
    ViewCall view;            ///< of views
    Value* value = nullptr;
    int version = 0;  ///< the number of writes to the base that the value knows of
    int writes = 0;   ///< of bases
    std::optional<size_t> input;
    Entry& base() { return parent ? parent->base() : *this; }
  };
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    uint64_t checksum = 0;
    bool watched = true;  ///< for writes past the dispatcher: not weights, which are too large for that
    bool fresh = true;    ///< made during the capture
    bool uninitialised = false;  ///< of empty(): whatever is written there is the first content
    std::vector<Entry*> entries;
  };
  struct Handle {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    Entry* entry = nullptr;
  };

  Memory* try_memory(const at::Tensor& tensor) const;
  Memory& add_memory(const at::Tensor& tensor, bool fresh, bool watched = true);
  Entry& add_entry(Memory& memory, const at::Tensor& tensor, Value* value);
  Entry& add_view(Entry& parent, const at::Tensor& tensor, ViewCall view, Value* value);
  void remember(const at::Tensor& tensor, Entry& entry);
  Entry& entry_of(const at::Tensor& tensor);
  Entry& adopt(const at::Tensor& tensor);
  Entry& adopt_named(const at::Tensor& tensor, const std::vector<const ModuleTensor*>& names);
  Value* constant_value(const at::Tensor& tensor, bool fresh);
  Entry& add_constant(const at::Tensor& tensor, bool fresh);
  Entry* try_same(Memory& memory, const Geometry& geometry) const;
  void check_written(Memory& memory, Entry& entry, const at::Tensor& tensor);
  Value* refresh(Entry& entry);

  GraphRecorder& recorder_;
  const ModuleTensors& names_;
  MemorySnapshots& snapshots_;
  std::unordered_map<const c10::StorageImpl*, std::unique_ptr<Memory>> memories_;
  std::unordered_map<const c10::TensorImpl*, Handle> handles_;
  std::vector<std::unique_ptr<Entry>> entries_;
  TensorMap tensors_;
  size_t constants_ = 0;
};

}  // namespace halftone
