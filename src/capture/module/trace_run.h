// A model while it is traced: its inputs are bound, and everything that the run changes is restored at the
// end.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "capture/module/tracing/snapshots.h"
#include "capture/module/tracing/tracer.h"
#include "halftone/capture/capture_module.h"

namespace halftone {

/// Only in a CaptureLock.
class TraceRun {
 public:
  /// `module`: whose tensors have names; its buffers, gradients and flags are restored. May be nullptr.
  /// `graph` must outlive this.
  TraceRun(Graph& graph, ModuleTensors names, torch::nn::Module* module, TracerOptions options);
  /// Memory, module and random state are as they were.
  ~TraceRun();
  TraceRun(const TraceRun&) = delete;
  TraceRun& operator=(const TraceRun&) = delete;

  /// The leaves of the arguments become inputs of the graph: tensors by the names (empty: input0, input1, …),
  /// others as fixed ones.
  void bind_inputs(const std::vector<c10::IValue>& leaves, const std::vector<std::string>& names);
  /// Runs what is given while the tracer listens; failures of the model name the operator and the place.
  void run(const std::function<void()>& model);
  /// User results, then what was written; notes of what people should know are added.
  void set_outputs(const std::vector<c10::IValue>& results, std::vector<std::string>& notes);

  GraphRecorder& recorder() { return recorder_; }
  AliasTracker& aliases() { return aliases_; }
  Tracer& tracer() { return tracer_; }

 private:
  Graph& graph_;
  const ModuleTensors names_;
  MemorySnapshots memory_;
  GraphRecorder recorder_;
  AliasTracker aliases_;
  Tracer tracer_;
  ModuleSnapshot module_;
};

bool is_defined_tensor(const c10::IValue& leaf);

}  // namespace halftone
