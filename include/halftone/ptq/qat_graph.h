// Quantization-aware training of graphs: fake quantization where prepare() would put observers, training
// through the interpreter, then convert() and lower() as after calibration. After torch.ao's prepare_qat_fx.
// docs/qat.md.
//
//   QatGraph qat = prepare_qat(*module, static_int8_mapping(), example, builtin_backend_config("x86"));
//   torch::optim::SGD optimizer(qat.parameters(), 0.01);
//   …  loss_of(qat.forward(inputs)).backward(); optimizer.step();  …
//   const ConvertResult result = qat.convert();            // the reference graph, with the trained weights
#pragma once

#include <memory>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/ptq/ptq.h"

namespace halftone {

/// A copy of a model in training. Not for several threads at a time. Movable.
class HALFTONE_API QatGraph {
 public:
  QatGraph(QatGraph&&) noexcept;
  QatGraph& operator=(QatGraph&&) noexcept;
  ~QatGraph();

  /// Flat inputs in the order of input_names(), flat outputs. In the caller's grad mode: gradients reach
  /// parameters() and inputs, straight through the rounding. In training observers see the values. kState for
  /// a value that no training call has reached yet; kInvalidArgument for NaN in an observed value.
  std::vector<c10::IValue> forward(const std::vector<c10::IValue>& inputs);

  /// Observers see values in training only, which is how it begins. Operators stay as they were captured:
  /// dropout in a graph that was captured in evaluation stays off.
  void train(bool on = true);
  /// From now on scales of activations stay as they are. Those of weights are always those of the present
  /// weights.
  void freeze_observers();

  std::vector<at::Tensor> parameters() const;  ///< trainable, in the order of named_parameters()
  TensorMap named_parameters() const;
  /// Everything that training changes: parameters, and the ranges of observers by "observer:" and a number.
  /// Handles.
  TensorMap state() const;
  /// What state() was, of a model that was prepared in the same way. kInvalidArgument, listing the
  /// differences.
  void load_state(const TensorMap& state);

  const GraphModule& module() const;                    ///< with its fake-quantize nodes
  const std::vector<MatchedPattern>& patterns() const;  ///< as PreparedModel has them
  /// The reference graph with the present parameters and scales. kState for values that were never observed.
  ConvertResult convert(const ConvertOptions& options = {}) const;

 private:
  friend HALFTONE_API QatGraph prepare_qat(const GraphModule&, const QConfigMapping&,
                                           const std::vector<c10::IValue>&, const BackendConfig&);
  struct State;
  explicit QatGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// prepare() with fake quantization; its errors are these. Batch norms are folded first and stay folded:
/// train before, then fine-tune. Histograms become moving averages (a histogram of values that change in
/// training means nothing). kUnsupported where a qconfig quantizes activations at run time or has zero points
/// in floating point.
HALFTONE_API QatGraph prepare_qat(const GraphModule& module, const QConfigMapping& mapping,
                                  const std::vector<c10::IValue>& example_inputs,
                                  const BackendConfig& config = builtin_backend_config("native"));

}  // namespace halftone
