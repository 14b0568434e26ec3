// Places the observers. In torch.ao's terms: each quantized match wants its operands and its result in the
// dtype of its qconfig; an operand whose maker does not give that dtype gets an observer of its own, a result
// gets one for all its readers. Operations that only move or pick elements share one observer among operands
// and result.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <unordered_map>

#include "quant/ptq/decide.h"
#include "quant/ptq/ptq_state.h"

namespace halftone::ptq {
namespace {

class Placer {
 public:
  explicit Placer(PtqState& state) : state_(state) {
    for (const PlannedMatch& match : state_.matches) {
      if (!match.info.quantized || match.qconfig->activation.is_dynamic) continue;
      if (is_float(match.match.last()->output()))
        dtypes_[match.match.last()->output()] = match.qconfig->activation.dtype;
    }
  }

  void run() {
    for (size_t i = 0; i < state_.matches.size(); ++i) {
      const PlannedMatch& match = state_.matches[i];
      if (!match.info.quantized) continue;
      place_inputs(match, i);
      place_output(match, i);
    }
  }

 private:
  bool is_float(const Value* value) const { return state_.floats.contains(value->name()); }

  ConfigDType dtype_of(const Value* value) const {
    const auto found = dtypes_.find(value);
    return found != dtypes_.end() ? found->second : ConfigDType::kFloat32;
  }

  void place_inputs(const PlannedMatch& planned, size_t index) {
    const ObserverConfig& wanted = planned.qconfig->activation;
    if (!is_quantized_dtype(wanted.dtype) || wanted.kind == ObserverKind::kReuseInput) return;
    const std::vector<Value*> inputs = planned.match.inputs();
    for (Value* value : inputs) {
      if (!is_float(value)) continue;
      if (wanted.is_dynamic && value != inputs.front()) continue;
      if (wanted.is_dynamic || dtype_of(value) != wanted.dtype) {
        place_input(planned, index, value);
      } else if (ObservedPoint* point = output_point(value)) {
        point->matches.push_back(index);
      }
    }
  }

  void place_input(const PlannedMatch& planned, size_t index, Value* value) {
    const ObserverConfig& wanted = planned.qconfig->activation;
    const auto same = [&](const ObservedPoint& point) {
      return point.value == value && !point.is_output && point.config.kind == wanted.kind &&
             point.config.dtype == wanted.dtype &&
             (wanted.kind != ObserverKind::kFixed || point.config == wanted);
    };
    auto place = std::find_if(state_.points.begin(), state_.points.end(), same);
    if (place == state_.points.end()) {
      state_.points.push_back({value, false, {}, wanted, std::nullopt, {}});
      if (!wanted.is_dynamic) state_.points.back().observer = new_observer(wanted);
      place = std::prev(state_.points.end());
    }
    place->matches.push_back(index);
    for (const FusedOp* fused_op : planned.match.fused_ops) {
      for (Node* node : fused_op->nodes) {
        const std::vector<Value*> operands = node->input_values();
        if (std::find(operands.begin(), operands.end(), value) != operands.end())
          place->readers.push_back(node);
      }
    }
  }

  void place_output(const PlannedMatch& planned, size_t index) {
    const ObserverConfig& wanted = planned.qconfig->activation;
    Value* value = planned.match.last()->output();
    if (!is_quantized_dtype(wanted.dtype) || wanted.is_dynamic || !is_float(value)) return;
    const ObservationType type = observation_type_of(planned.match);
    if (type == ObservationType::kInputOutputNotObserved) return;
    ObservedPoint point{value, true, {}, wanted, std::nullopt, {index}};
    if (type == ObservationType::kOutputSharesInputObserver || wanted.kind == ObserverKind::kReuseInput) {
      point.observer = shared_observer(planned.match);
      if (!point.observer) {
        dtypes_.erase(value);  // nothing before it is quantized: it passes floats on
        pass_on(index);
        return;
      }
    } else {
      point.observer = new_observer(wanted);
    }
    state_.points.push_back(std::move(point));
  }

  void pass_on(size_t index) {
    MatchedPattern& info = state_.matches[index].info;
    info.quantized = false;
    info.reason = "its operand stays float";
  }

  size_t new_observer(const ObserverConfig& config) {
    state_.observers.push_back(make_observer(config));
    return state_.observers.size() - 1;
  }

  ObservedPoint* output_point(const Value* value) {
    for (ObservedPoint& point : state_.points) {
      if (point.value == value && point.is_output) return &point;
    }
    return nullptr;
  }

  /// The point that `reader` sees at its operand.
  ObservedPoint* point_at(const Value* value, const FusedOp& reader) {
    for (ObservedPoint& point : state_.points) {
      if (point.value != value || point.is_output || !point.observer) continue;
      const bool reads = std::any_of(reader.nodes.begin(), reader.nodes.end(), [&](const Node* node) {
        return std::find(point.readers.begin(), point.readers.end(), node) != point.readers.end();
      });
      if (reads) return &point;
    }
    ObservedPoint* point = output_point(value);
    return point != nullptr && point->observer ? point : nullptr;
  }

  /// The nearest point at or before an operand, up through views without observers. (torch.ao goes up
  /// through any operation, and so gives a reshape after a float layer norm the scale of what came before
  /// it.)
  ObservedPoint* nearest_point(const Value* value, const FusedOp* reader) {
    while (value != nullptr) {
      if (ObservedPoint* point = point_at(value, *reader)) return point;
      reader = state_.fused_ops->producer(value);
      if (reader == nullptr || !is_view(*reader->root)) return nullptr;
      const std::vector<Value*> operands = reader->root->input_values();
      value = operands.empty() ? nullptr : operands.front();
    }
    return nullptr;
  }

  static bool is_view(const Node& node) {
    if (node.op() == nullptr) return node.is("builtin::unpack") || node.is("builtin::getitem");
    const auto& returns = node.op()->schema().returns();
    return !returns.empty() && returns[0].alias_info() != nullptr && !returns[0].alias_info()->isWrite();
  }

  /// Operands that stand in a list (cat) join the first one's observer.
  std::optional<size_t> shared_observer(const PatternMatch& match) {
    const std::vector<Value*> inputs = match.inputs();
    if (inputs.empty()) return std::nullopt;
    const ObservedPoint* found = nearest_point(inputs.front(), match.root);
    if (found == nullptr) return std::nullopt;
    const size_t observer = *found->observer;
    if (match.root->root->input(0).list() != nullptr) {
      for (const Value* arg : inputs) {
        ObservedPoint* point = nearest_point(arg, match.root);
        if (point == nullptr) return std::nullopt;
        point->observer = observer;
      }
    }
    return observer;
  }

  PtqState& state_;
  std::unordered_map<const Value*, ConfigDType> dtypes_;
};

}  // namespace

void place_observers(PtqState& state) {
  Placer(state).run();
  for (size_t i = 0; i < state.points.size(); ++i)
    state.points_by_value[state.points[i].value->name()].push_back(i);
}

std::string layer_of_value(const Value& value) {
  if (value.producer() != nullptr) return value.producer()->source().layer;
  return value.users().empty() ? std::string() : value.users().front()->source().layer;
}

std::string describe_value(const Value& value) {
  const std::string layer = layer_of_value(value);
  return layer.empty() ? "%" + value.name() : "%" + value.name() + " (layer " + layer + ")";
}

std::vector<std::string> keys_of(const std::vector<ObservedPoint>& points) {
  std::unordered_map<std::string, int> seen;
  std::vector<std::string> keys;
  for (const ObservedPoint& point : points) {
    const int count = ++seen[point.value->name()];
    keys.push_back(count == 1 ? point.value->name() : point.value->name() + "#" + std::to_string(count));
  }
  return keys;
}

}  // namespace halftone::ptq
