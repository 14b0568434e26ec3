// Calibration and its statistics.
#include <fmt/format.h>

#include <utility>

#include "base/errors.h"
#include "quant/ptq/ptq_state.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

/// Shows a value to the observers of its points, naming it where they refuse it.
void observe_value(PtqState& state, const Value& value, const c10::IValue& held) {
  const auto found = state.points_by_value.find(value.name());
  if (!held.isTensor() || found == state.points_by_value.end()) return;
  for (const size_t index : found->second) {
    const ptq::ObservedPoint& point = state.points[index];
    if (!point.observer) continue;
    try {
      state.observers[*point.observer]->observe(held.toTensor());
    } catch (const Error& error) {
      throw error.with_context(
          fmt::format("calibration sample {}, {}", state.samples + 1, ptq::describe_value(value)));
    }
  }
}

void observe_inputs(PtqState& state, const std::vector<c10::IValue>& inputs) {
  const auto tensors = state.module->tensors();
  size_t user = 0;
  for (const GraphInput& input : state.module->graph().inputs()) {
    if (input.kind != InputKind::kUser) {
      observe_value(state, *input.value, tensors->at(input.target));
    } else if (user < inputs.size()) {
      observe_value(state, *input.value, inputs[user++]);
    }
  }
}

/// A hook for one run: it borrows the caller's variables.
class HookForOneRun {
 public:
  HookForOneRun(Session& session, NodeHook hook) : session_(session) {
    session_.set_node_hook(std::move(hook));
  }
  ~HookForOneRun() { session_.set_node_hook({}); }
  HookForOneRun(const HookForOneRun&) = delete;
  HookForOneRun& operator=(const HookForOneRun&) = delete;

 private:
  Session& session_;
};

/// The statistics as the observer of `config` would have made them.
std::unique_ptr<Observer> adapt(const JsonCursor& place, const ObserverConfig& config) {
  auto json = place.raw();
  const auto saved = Observer::from_json(json.dump())->config();
  if (saved.kind == config.kind && saved.bins == config.bins && saved.ch_axis == config.ch_axis) {
    json["observer"] = qconfig::Json(qconfig::observer_json(config));
    return Observer::from_json(json.dump());
  }
  // The least and largest element are in every histogram.
  if (config.kind == ObserverKind::kMinMax && saved.kind == ObserverKind::kHistogram) {
    json["observer"] = qconfig::Json(qconfig::observer_json(config));
    json.erase("histogram");
    return Observer::from_json(json.dump());
  }
  place.fail_here(
      fmt::format("statistics of a {} cannot serve a {}", to_string(saved.kind), to_string(config.kind)));
}

}  // namespace

const PtqState& PtqAccess::state(const PreparedModel& model) {
  return *model.state_;
}

PtqState& PtqAccess::mutable_state(PreparedModel& model) {
  return *model.state_;
}

PreparedModel::PreparedModel(std::unique_ptr<PtqState> state) : state_(std::move(state)) {
  for (const ptq::PlannedMatch& match : state_->matches) patterns_.push_back(match.info);
}
PreparedModel::PreparedModel(PreparedModel&&) noexcept = default;
PreparedModel& PreparedModel::operator=(PreparedModel&&) noexcept = default;
PreparedModel::~PreparedModel() = default;

std::vector<c10::IValue> PreparedModel::calibrate(const std::vector<c10::IValue>& inputs) {
  PtqState& state = *state_;
  // The session checks the inputs first, so that a refused sample leaves no trace.
  bool begun = false;
  const auto observe = [&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    if (!std::exchange(begun, true)) observe_inputs(state, inputs);
    for (size_t i = 0; i < outputs.size() && i < node.outputs().size(); ++i)
      observe_value(state, *node.output(i), outputs[i]);
  };
  const HookForOneRun hook(*state.session, observe);
  std::vector<c10::IValue> outputs = state.session->run(inputs);
  ++state.samples;
  return outputs;
}

int64_t PreparedModel::samples() const {
  return state_->samples;
}

const GraphModule& PreparedModel::module() const {
  return *state_->module;
}

std::string PreparedModel::statistics_json() const {
  qconfig::Json values = qconfig::Json::object();
  const std::vector<std::string> keys = ptq::keys_of(state_->points);
  for (size_t i = 0; i < keys.size(); ++i) {
    const ptq::ObservedPoint& point = state_->points[i];
    if (!point.observer) continue;
    values[keys[i]] = qconfig::Json::parse(state_->observers[*point.observer]->to_json());
  }
  return qconfig::Json{{"samples", state_->samples}, {"values", std::move(values)}}.dump(1);
}

void PreparedModel::load_statistics(std::string_view json) {
  const auto document = parse_json(json, "statistics");
  const JsonCursor root(document, "statistics");
  const int64_t samples = root.at("samples").get_int();
  if (samples < 0) root.at("samples").fail_here("cannot be negative");
  const JsonCursor values = root.at("values");
  std::vector<std::unique_ptr<Observer>> loaded(state_->observers.size());
  const std::vector<std::string> keys = ptq::keys_of(state_->points);
  for (size_t i = 0; i < keys.size(); ++i) {
    const ptq::ObservedPoint& point = state_->points[i];
    if (!point.observer || loaded[*point.observer] != nullptr) continue;
    if (!values.has(keys[i]))
      fail(ErrorCode::kInvalidArgument, "the statistics have nothing of {}",
           ptq::describe_value(*point.value));
    loaded[*point.observer] = adapt(values.at(keys[i]), state_->observers[*point.observer]->config());
  }
  // Observers that sharing left without a point stay as they are.
  for (size_t i = 0; i < loaded.size(); ++i) {
    if (loaded[i] != nullptr) state_->observers[i] = std::move(loaded[i]);
  }
  state_->samples = samples;
}

}  // namespace halftone
