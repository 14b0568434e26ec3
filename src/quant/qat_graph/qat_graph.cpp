#include "halftone/ptq/qat_graph.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/errors.h"
#include "graph/rewrite/edit.h"
#include "graph/rewrite/stored_tensors.h"
#include "graph/run/graph_call.h"
#include "graph/run/interpreter.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/point_inserter.h"
#include "quant/ptq/ptq_state.h"
#include "quant/qat_graph/observed_range.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

std::string range_name(size_t observer) {
  return fmt::format("observer:{}", observer);
}

/// What a histogram observer becomes, whose values change in training.
ObserverConfig without_histogram(const ObserverConfig& config) {
  if (config.kind != ObserverKind::kHistogram) return config;
  ObserverConfig average(ObserverKind::kMovingAverageMinMax);
  average.dtype = config.dtype;
  average.qscheme = config.qscheme;
  average.reduce_range = config.reduce_range;
  average.quant_min = config.quant_min;
  average.quant_max = config.quant_max;
  average.eps = config.eps;
  return average;
}

void check_points(const PtqState& state) {
  for (const ptq::ObservedPoint& point : state.points) {
    if (!point.observer)
      fail(ErrorCode::kUnsupported,
           "{}: its qconfig quantizes activations at run time; graphs are trained for static scales",
           ptq::describe_value(*point.value));
    const ObserverKind kind = state.observers[*point.observer]->config().kind;
    if (kind == ObserverKind::kPerChannelMinMax || kind == ObserverKind::kMovingAveragePerChannelMinMax)
      fail(ErrorCode::kUnsupported, "{}: activations have one scale, not one for each channel",
           ptq::describe_value(*point.value));
  }
  for (const ptq::PlannedMatch& match : state.matches) {
    if (match.info.quantized && match.quantizes_weight &&
        match.qconfig->weight.qscheme == QScheme::kPerChannelAffineFloatQParams)
      fail(ErrorCode::kUnsupported,
           "{}: its weight's zero points are in floating point, which is not trained", match.info.layer);
  }
}

/// The prepared model with fake quantization at its points and weights.
class TrainingGraph : private ptq::PointInserter {
 public:
  explicit TrainingGraph(const PtqState& state) : PointInserter(state.module->clone()), state_(state) {}

  std::shared_ptr<GraphModule> run() {
    link_observed_ops();
    for (const ptq::PlannedMatch& match : state_.matches) {
      if (match.info.quantized && match.quantizes_weight) insert_weight(match);
    }
    insert_points(state_.points);
    lint_or_throw(graph_, "prepare_qat");
    return module_;
  }

 private:
  void insert_weight(const ptq::PlannedMatch& match) {
    Node* node = copied(*match.match.root->root);
    Value* weight = node->try_input("weight")->value();
    const std::string observer = match.qconfig->weight.to_dict();
    Value*& faked = weights_[{weight->name(), observer}];
    // Before the first node that reads it: matches are in order of execution.
    if (faked == nullptr)
      faked =
          insert_before(node, "halftone::fake_quantize_stored", {{"weight", weight}, {"observer", observer}},
                        weight->name() + "_fq", ptq::with_dtype(weight->meta(), at::kFloat), node->source());
    set_operand(*node, "weight", faked);
  }

  Inserted insert_at(const ptq::ObservedPoint& point, Value* value, Node* before,
                     const Source& source) override {
    const std::string name = range_name(*point.observer);
    Value*& range = ranges_[*point.observer];
    if (range == nullptr) {
      const at::Tensor start = at::zeros({kObservedRangeSize});
      range = add_stored_input(graph_, value_name_for("b_", name), InputKind::kBuffer, name, start);
      module_->put_tensor(name, start);
    }
    const ObserverConfig& config = state_.observers[*point.observer]->config();
    Value* result = insert_before(before, "halftone::observe_and_fake_quantize",
                                  {{"x", value}, {"range", range}, {"observer", config.to_dict()}},
                                  value->name() + "_fq", ptq::with_dtype(value->meta(), at::kFloat), source);
    return {result->producer(), result};
  }

  const PtqState& state_;
  std::map<std::pair<std::string, std::string>, Value*> weights_;
  std::map<size_t, Value*> ranges_;
};

}  // namespace

struct QatGraph::State {
  explicit State(PreparedModel model) : prepared(std::move(model)) {}
  PreparedModel prepared;
  std::shared_ptr<GraphModule> module;  ///< with fake quantization
  TensorMap tensors;                    ///< its own copies
  std::vector<std::string> parameters;  ///< names of the trainable ones
  std::map<size_t, at::Tensor> ranges;  ///< by observer
  std::unique_ptr<const InputCheck> check;
  std::unique_ptr<const InterpretedGraph> executor;

  /// The model that was given keeps its tensors: training works on copies.
  void copy_tensors() {
    std::map<const void*, at::Tensor> copies;  // tied ones stay tied
    for (const GraphInput& input : module->graph().inputs()) {
      if (input.kind == InputKind::kUser) continue;
      const at::Tensor original = module->tensor(input.target);
      at::Tensor& copy = copies[original.unsafeGetTensorImpl()];
      if (!copy.defined()) copy = original.detach().clone();
      const bool trains = input.kind == InputKind::kParameter && copy.is_floating_point();
      if (trains) copy.requires_grad_(true);
      if (trains) parameters.push_back(input.target);
      tensors[input.target] = copy;
    }
  }

  void set(ObservedRange place, bool on) {
    const at::NoGradGuard no_grad;
    for (auto& [observer, range] : ranges) range.narrow(0, place, 1).fill_(on ? 1 : 0);
  }
};

QatGraph::QatGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
QatGraph::QatGraph(QatGraph&&) noexcept = default;
QatGraph& QatGraph::operator=(QatGraph&&) noexcept = default;
QatGraph::~QatGraph() = default;

std::vector<c10::IValue> QatGraph::forward(const std::vector<c10::IValue>& inputs) {
  return call_graph({state_->module->name, *state_->check, *state_->executor, state_->tensors}, inputs, {});
}

void QatGraph::train(bool on) {
  state_->set(kObservedOn, on);
}

void QatGraph::freeze_observers() {
  state_->set(kObservedFrozen, true);
}

TensorMap QatGraph::named_parameters() const {
  TensorMap found;
  for (const std::string& name : state_->parameters) found.emplace(name, state_->tensors.at(name));
  return found;
}

std::vector<at::Tensor> QatGraph::parameters() const {
  std::vector<at::Tensor> found;
  for (const auto& [name, tensor] : named_parameters()) {
    const auto same = [&tensor = tensor](const at::Tensor& other) { return other.is_same(tensor); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(tensor);
  }
  return found;
}

TensorMap QatGraph::state() const {
  TensorMap found = named_parameters();
  for (const auto& [observer, range] : state_->ranges) found.emplace(range_name(observer), range);
  return found;
}

void QatGraph::load_state(const TensorMap& state) {
  TensorMap own = this->state();
  std::vector<std::string> differences;
  for (const auto& [name, tensor] : state) {
    const auto found = own.find(name);
    if (found == own.end()) {
      differences.push_back(fmt::format("\"{}\" is not in the model", name));
    } else if (found->second.sizes() != tensor.sizes() ||
               found->second.scalar_type() != tensor.scalar_type()) {
      differences.push_back(fmt::format("\"{}\" has another type or size", name));
    }
  }
  for (const auto& [name, tensor] : own) {
    if (!state.contains(name)) differences.push_back(fmt::format("\"{}\" is missing", name));
  }
  if (!differences.empty())
    fail(ErrorCode::kInvalidArgument, "{}: this state does not fit: {}", state_->module->name,
         fmt::join(differences, "; "));
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state) own.at(name).copy_(tensor);
}

const GraphModule& QatGraph::module() const {
  return *state_->module;
}

const std::vector<MatchedPattern>& QatGraph::patterns() const {
  return state_->prepared.patterns();
}

ConvertResult QatGraph::convert(const ConvertOptions& options) const {
  PtqState& state = PtqAccess::mutable_state(state_->prepared);
  for (const std::string& name : state_->parameters)
    state.module->put_tensor(name, state_->tensors.at(name).detach().clone());
  for (const auto& [observer, range] : state_->ranges) {
    const ObserverConfig& config = state.observers[observer]->config();
    const auto* numbers = range.const_data_ptr<float>();
    if (config.kind == ObserverKind::kFixed || numbers[kObservedCalls] == 0) continue;
    const qconfig::Json json{{"observer", qconfig::observer_json(config)},
                             {"calls", static_cast<int64_t>(numbers[kObservedCalls])},
                             {"min", {numbers[kObservedMin]}},
                             {"max", {numbers[kObservedMax]}}};
    state.observers[observer] = Observer::from_json(json.dump());
  }
  return halftone::convert(state_->prepared, options);
}

QatGraph prepare_qat(const GraphModule& module, const QConfigMapping& mapping,
                     const std::vector<c10::IValue>& example_inputs, const BackendConfig& config) {
  auto state = std::make_unique<QatGraph::State>(prepare(module, mapping, example_inputs, config));
  PtqState& prepared = PtqAccess::mutable_state(state->prepared);
  check_points(prepared);
  for (auto& observer : prepared.observers) observer = make_observer(without_histogram(observer->config()));
  state->module = TrainingGraph(prepared).run();
  state->copy_tensors();
  for (size_t i = 0; i < prepared.observers.size(); ++i) {
    if (const auto range = state->tensors.find(range_name(i)); range != state->tensors.end())
      state->ranges.emplace(i, range->second);
  }
  state->check = std::make_unique<const InputCheck>(*state->module);
  state->executor = std::make_unique<const InterpretedGraph>(
      std::shared_ptr<const Graph>(state->module, &state->module->graph()));
  QatGraph result(std::move(state));
  result.train();
  return result;
}

}  // namespace halftone
