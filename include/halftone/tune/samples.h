// Samples for tuning: calls of any nesting and of several shapes, and which of their sizes may
// change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/capture/capture_module.h"
#include "halftone/graph/graph_module.h"
#include "halftone/graph/sample.h"

namespace halftone {

/// The batch dimension: the number of items (texts, images) of a call.
struct BatchDim {
  std::string input;  ///< as in DynamicDim; empty: the first tensor
  int64_t dim = 0;
};

/// Calls, and what is known of their sizes. What is not declared is inferred: sizes that differ from sample
/// to sample may change, those that are always equal change together; a captured graph says itself which of
/// its sizes may change. The batch is dimension 0 of the first tensor if that may change.
struct Samples {
  Samples() = default;
  Samples(std::vector<Sample> calls) : calls(std::move(calls)) {}  // NOLINT(google-explicit-constructor)

  std::vector<Sample> calls;  ///< empty: the sample inputs of a captured graph
  /// For validation only. Empty: the last fifth of `calls`, one at least; with one call only, made up of it:
  /// integers in its range, floats with its mean and deviation. Shapes that are not among these get a made-up
  /// one too.
  std::vector<Sample> held_out;
  std::optional<BatchDim> batch;
  std::vector<DynamicDim> dynamic;  ///< of C++ modules; a graph has its own
};

/// A tensor among the arguments, nested ones too. Its name is the graph's or GraphSpec's, else "input0", ….
struct SampleTensor {
  std::string name;
  std::string dtype;  ///< "f32"
  std::vector<int64_t> sizes;
  bool operator==(const SampleTensor&) const = default;
};

/// Calls with the same sizes.
struct HALFTONE_API SampleShape {
  std::vector<SampleTensor> tensors;
  std::optional<int64_t> batch;  ///< nothing: the model has no such dimension
  size_t calls = 0;
  std::string label() const;  ///< of the first tensor: "1x128"
};

/// A size that may change, and the result of running the model at the ends of its range.
struct SampleRange {
  std::string symbol;
  int64_t min = 1;
  int64_t max = 1;
  bool declared = true;  ///< false: inferred from the samples; then the ends are theirs
  /// One sentence each: "tokens = 512: runs", "batch = 64: not tried, …", "tokens = 0: does not run: …".
  std::vector<std::string> checks;
};

/// The call that Python would make of flat inputs, in the order of GraphModule::input_names().
HALFTONE_API Sample sample_from_flat(const GraphModule& module, const std::vector<c10::IValue>& inputs);
/// The opposite. kInvalidArgument, with the place, if the nesting is not the model's.
HALFTONE_API std::vector<c10::IValue> flat_inputs(const GraphModule& module, const Sample& sample);

/// Another call with the same sizes: integers in the range of the sample's, floats with its mean and
/// deviation, masks of ones and zeros and what is not a tensor as they are. The same for the same seed; the
/// process's random state is left alone.
HALFTONE_API Sample synthetic_sample(const Sample& sample, uint64_t seed);

/// Flat inputs of a call with made-up values. `shapes`: "ids:1x128,mask:1x128", or "1x128" where the model
/// takes one tensor; inputs that it does not name have the size of the sample inputs, or what the graph
/// declares. The values are like those of the sample inputs, as in synthetic_sample(); where the model has
/// none, zeros and ones for integers, and -1 to 1 or so for floats. The same for the same seed.
/// kInvalidArgument for text that is no list of shapes, for unknown and repeated names, and where a size is
/// not known. Whether the model takes these sizes is not checked here.
HALFTONE_API std::vector<c10::IValue> inputs_of_shapes(const GraphModule& module, std::string_view shapes,
                                                       uint64_t seed);

/// The value of a user input that a call may leave out: constants, None, and numbers of the sample inputs.
/// Nothing for tensors, which must be there. `index`: as in GraphModule::input_names().
HALFTONE_API std::optional<c10::IValue> known_input(const GraphModule& module, size_t index);

}  // namespace halftone
