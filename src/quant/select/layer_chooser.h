// Decides, layer by layer, what quantize_ does with a model: the options' rules in one place for modules and
// graphs.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/quant/quantize.h"

namespace halftone {

/// What is known of a layer before the options are asked.
struct LayerState {
  std::optional<QuantConfig> already = std::nullopt;  ///< the config it is quantized with
  /// `already` was read from operators, which tell no more than stored_config.
  bool from_graph = false;
  std::string obstacle = {};  ///< why it cannot be quantized, whatever the options say; empty: it can
  std::string convolution =
      {};  ///< which one it is; only formats with has_convolution() take it. Empty: none
};

/// The config without what concerns activations, which an embedding does not have: int8wo for int8dq.
QuantConfig embedding_config(const QuantConfig& config);

/// The config without what only matters while quantizing: all that operators and tensors of a graph tell.
QuantConfig stored_config(const QuantConfig& config);

/// Use: choose() for every layer in the model's order, then finish(), and only then change the model.
class LayerChooser {
 public:
  /// kInvalidArgument, naming the pattern, for one that does not parse.
  LayerChooser(const QuantConfig& config, const QuantizeOptions& options);

  /// The layer's outcome and config, or the reason why it is kept; bytes are left to the caller.
  /// kInvalidArgument if the layer is quantized already and another config was chosen for it.
  LayerReport choose(const LayerInfo& layer, const LayerState& state = {});

  /// kInvalidArgument if a pattern matched no layer; where a format refused layers, naming all of them;
  /// and if nothing is to be done, with every layer and why it was kept, and with what the scheme leaves
  /// alone.
  void finish(const std::vector<LeftAlone>& left_alone = {}) const;

 private:
  struct Pattern {
    std::string role;  ///< "include", "exclude", "override"
    std::string text;
    std::regex regex;
    bool matched = false;
    bool matches(const std::string& name);
  };
  struct Choice {
    std::optional<QuantConfig> config;
    std::string reason;
    bool untouched = false;  ///< kept by the config, not by the caller
  };
  static Pattern make_pattern(std::string role, const std::string& text);
  Choice choose_config(const LayerInfo& layer);
  LayerReport keep(LayerReport report, std::string reason, bool untouched);
  [[noreturn]] void fail_nothing_to_do(const std::vector<LeftAlone>& left_alone) const;

  QuantConfig config_;
  QuantizeOptions options_;
  std::optional<Pattern> include_;
  std::optional<Pattern> exclude_;
  std::vector<Pattern> overrides_;  ///< in the options' order
  std::vector<std::string> names_;
  std::vector<std::string> kept_;     ///< "name: reason"
  std::vector<std::string> refused_;  ///< likewise
  size_t done_ = 0;                   ///< layers to quantize, or quantized already as asked
};

}  // namespace halftone
