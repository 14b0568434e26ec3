// Samples of a model on their way into a .ht file and out of it: values of torch as values of files.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <vector>

#include "checkpoint/container/ht_value.h"
#include "checkpoint/records/stored_tensors.h"
#include "halftone/graph/sample.h"

namespace halftone {

/// The tensors among the values, nested ones too, in the order in which store_value takes their records.
std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values);
std::vector<at::Tensor> tensors_in(const std::vector<Sample>& samples);

/// Hands out the records of stored tensors, one after the other. Without records, tensors become shapes.
class RecordSource {
 public:
  RecordSource() = default;
  explicit RecordSource(std::span<const HtRecord> records) : records_(records), stored_(true) {}
  HtValue next(const at::Tensor& tensor);

 private:
  std::span<const HtRecord> records_;
  bool stored_ = false;
};

/// kUnsupported, naming `what`, for values that are neither a tensor, None, a number, text nor a tuple, list
/// or dict (with text as keys) of such.
HtValue store_value(const c10::IValue& value, RecordSource& tensors, const std::string& what);
std::vector<HtSample> store_samples(const std::vector<Sample>& samples, RecordSource tensors);

/// A tensor of which the file has only the shape comes back without data, on the meta device.
c10::IValue restore_value(const HtValue& value, TensorRestorer& tensors);
std::vector<Sample> restore_samples(const std::vector<HtSample>& samples, TensorRestorer& tensors);

}  // namespace halftone
