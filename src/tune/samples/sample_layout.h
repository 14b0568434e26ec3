// The layout of samples, known before anything runs: names, shapes, sizes that may change, and which
// calls are kept for validation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/backend/backend.h"
#include "halftone/tune/samples.h"

namespace halftone {

struct SampleLayout {
  std::vector<Sample> calls;  ///< all; never empty
  std::vector<Sample> build;  ///< those that validation does not use
  std::vector<Sample> validation;
  size_t synthetic = 0;  ///< the last ones of `validation`
  std::vector<SampleShape> shapes;
  std::vector<Sample> shape_calls;  ///< one for each shape, to be timed
  std::vector<SampleRange> ranges;  ///< without checks
  std::vector<DynamicDim> dynamic;  ///< for the capture of a C++ module; empty for graphs
};

/// `graph`: nullptr if the model is a C++ module. kInvalidArgument if there are no samples, if they
/// differ in the number of their tensors, and if a declared name or dimension is not there.
SampleLayout lay_out(const Samples& samples, const GraphModule* graph, const GraphSpec& spec, uint64_t seed);

/// A call at an end of a range.
struct RangeEnd {
  size_t range = 0;  ///< which of SampleLayout::ranges
  int64_t size = 0;
  std::string note;  ///< "tokens = 512", or "tokens = 64 (the range ends at 100000)"
  Sample call;
};
/// The first sample with one size changed to each end of its declared range, its elements repeated or cut
/// off. The upper end is four times the largest sample at most: a range may be without end, and time is not.
std::vector<RangeEnd> range_ends(const GraphModule& graph, const SampleLayout& layout);

/// The call with another size of its batch, the first dimension of the graph's first tensor: its elements are
/// repeated or cut off. kInvalidArgument if the graph has a fixed size there.
Sample with_batch(const GraphModule& graph, const Sample& sample, int64_t batch);

/// Tensors, numbers and the like among the arguments, nested ones too; positional ones first.
std::vector<c10::IValue> leaves_of(const Sample& sample);
/// Dtypes and sizes of all tensors: calls with equal ones have one shape.
std::vector<int64_t> signature_of(const Sample& sample);

/// The same call with copies of its tensors: for models that write to their inputs.
Sample copy_of(const Sample& sample);

}  // namespace halftone
