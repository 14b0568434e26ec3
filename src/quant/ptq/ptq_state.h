// The decisions of prepare(), which convert() carries out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "halftone/ptq/ptq.h"
#include "quant/ptq/match.h"

namespace halftone {
namespace ptq {

/// A place where a value is observed and later quantized.
struct ObservedPoint {
  Value* value = nullptr;
  bool is_output = false;          ///< for all who read the value; else for `readers` only
  std::vector<Node*> readers;      ///< nodes whose operands are replaced
  ObserverConfig config;           ///< as the qconfig says; what counts is the observer
  std::optional<size_t> observer;  ///< index; nothing if the value is quantized at run time
  std::vector<size_t> matches;     ///< the matches that made it or read it
};

struct PlannedMatch {
  PatternMatch match;
  MatchedPattern info;
  std::optional<QConfig> qconfig;
  bool quantizes_weight = false;
};

}  // namespace ptq

struct PtqState {
  std::shared_ptr<GraphModule> module;  ///< float, fused; never changed after prepare()
  std::vector<BackendPatternConfig> configs;
  std::unique_ptr<ptq::FusedOpGraph> fused_ops;
  std::unordered_set<std::string> floats;   ///< names of the values that are float32 tensors
  std::unordered_set<std::string> written;  ///< names of values that a node writes in place
  std::vector<ptq::PlannedMatch> matches;   ///< in order of execution
  std::vector<ptq::ObservedPoint> points;
  std::unordered_map<std::string, std::vector<size_t>> points_by_value;
  std::vector<std::unique_ptr<Observer>> observers;
  std::vector<std::string> folded;
  std::unique_ptr<Session> session;
  int64_t samples = 0;
};

/// The one way to a prepared model's state for convert(), QatGraph and tests.
struct PtqAccess {
  static const PtqState& state(const PreparedModel& model);
  static PtqState& mutable_state(PreparedModel& model);  ///< for training, which changes weights and ranges
};

namespace ptq {

/// Puts observers where quantized matches read and write: torch.ao's places, with its sharing.
void place_observers(PtqState& state);

/// "%relu_1 (layer1.0.relu)", for messages.
std::string describe_value(const Value& value);
/// The layer of the node that makes the value, or of the first that reads it.
std::string layer_of_value(const Value& value);
/// The keys of the points' statistics: names of their values; name#2 if a value is observed a second time.
std::vector<std::string> keys_of(const std::vector<ObservedPoint>& points);

}  // namespace ptq
}  // namespace halftone
