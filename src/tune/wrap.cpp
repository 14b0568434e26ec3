// wrap(): a module that records its calls and is tuned with them.
#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "base/errors.h"
#include "halftone/tune/modules.h"
#include "tune/samples/sample_layout.h"
#include "tune/setup.h"

namespace halftone {

struct TunableModule::State {
  std::shared_ptr<torch::nn::Module> module;
  ForwardFunction forward;
  WrapOptions options;

  /// Held by calls of the module, alone by the capture: that puts other tensors into the module for a while.
  std::shared_mutex calling;

  std::mutex mutex;  ///< guards what follows; never held while the model runs
  std::vector<Sample> samples;
  std::vector<std::vector<int64_t>> signatures;  ///< of the samples
  std::shared_ptr<const Backend> tuned;

  std::shared_ptr<const Backend> backend() {
    const std::lock_guard lock(mutex);
    return tuned;
  }

  void record(const std::vector<c10::IValue>& args) {
    const Sample sample{args, {}};
    const std::vector<int64_t> signature = signature_of(sample);
    {
      const std::lock_guard lock(mutex);
      if (!has_room_for(signature)) return;
    }
    // Before the call, which may write to its arguments; copied outside the lock.
    Sample copy = copy_of(sample);
    const std::lock_guard lock(mutex);
    if (!has_room_for(signature)) return;
    samples.push_back(std::move(copy));
    signatures.push_back(signature);
  }

  bool has_room_for(const std::vector<int64_t>& signature) const {
    const auto same = static_cast<size_t>(std::count(signatures.begin(), signatures.end(), signature));
    return samples.size() < options.max_samples && same < options.max_per_shape;
  }
};

TunableModule::TunableModule(std::shared_ptr<State> state) : state_(std::move(state)) {}

TunableModule wrap(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward, WrapOptions options) {
  if (!module || !forward)
    fail(ErrorCode::kInvalidArgument, "wrap: needs a module and the function that calls it");
  auto state = std::make_shared<TunableModule::State>();
  state->module = std::move(module);
  state->forward = std::move(forward);
  state->options = options;
  return TunableModule(std::move(state));
}

c10::IValue TunableModule::operator()(const std::vector<c10::IValue>& args) const {
  if (const auto backend = state_->backend()) return backend->infer(args);
  state_->record(args);
  const std::shared_lock lock(state_->calling);
  return state_->forward(args);
}

bool TunableModule::is_tuned() const {
  return state_->backend() != nullptr;
}

std::vector<Sample> TunableModule::samples() const {
  const std::lock_guard lock(state_->mutex);
  return state_->samples;
}

TuneReport TunableModule::tune(const Strategy& strategy, const TuneOptions& options) const {
  const std::vector<Sample> recorded = samples();
  if (recorded.empty())
    fail(ErrorCode::kState, "a wrapped module is tuned with its calls, and there was none yet");
  const ModelSource model(state_->module, state_->forward);
  std::shared_ptr<GraphModule> graph;
  {
    const TuningSetup setup = set_up(model, recorded, strategy, options);
    const std::unique_lock lock(state_->calling);
    graph = capture_model(model, setup, options.device)->clone();
  }
  TuneOptions of_graph = options;
  of_graph.spec = {};
  TuneResult result = halftone::tune(graph, recorded, strategy, of_graph);
  const std::lock_guard lock(state_->mutex);
  state_->tuned = std::make_shared<const Backend>(result.backend);
  return std::move(result.report);
}

void TunableModule::reset() const {
  const std::lock_guard lock(state_->mutex);
  state_->tuned = nullptr;
}

}  // namespace halftone
