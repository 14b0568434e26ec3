#include "common/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/inputs.h"
#include "halftone/base/error.h"

namespace halftone::cli {

namespace {

/// How the first dimension of the model's first tensor is cut.
struct CallSize {
  size_t input = 0;    ///< index of that tensor
  bool fixed = false;  ///< the graph takes this size only
  int64_t entries = 1;
};

std::optional<CallSize> call_size(const GraphModule& module, int64_t asked) {
  const std::vector<const GraphInput*> inputs = user_inputs(module);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& meta = inputs[i]->value->meta();
    if (!meta || meta->sizes.empty()) continue;
    CallSize size;
    size.input = i;
    size.fixed = meta->sizes[0].is_constant();
    if (size.fixed)
      size.entries = meta->sizes[0].constant();
    else if (i < module.sample_inputs.size() && module.sample_inputs[i].isTensor())
      size.entries = std::max<int64_t>(1, module.sample_inputs[i].toTensor().size(0));
    if (asked > 0 && size.fixed && asked != size.entries) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("--batch {}: this model takes calls of {} (of '{}'), no others", asked,
                              size.entries, inputs[i]->target));
    }
    if (asked > 0) size.entries = asked;
    return size;
  }
  return std::nullopt;
}

std::vector<c10::IValue> slice_call(const InputSet& set, int64_t entries, int64_t begin, int64_t end) {
  std::vector<c10::IValue> call;
  for (const c10::IValue& value : set.values) {
    const bool cut = value.isTensor() && value.toTensor().dim() > 0 && value.toTensor().size(0) == entries;
    call.push_back(cut ? c10::IValue(value.toTensor().slice(0, begin, end).contiguous()) : value);
  }
  return call;
}

}  // namespace

CalibrationCalls collect_calibration(const GraphModule& module, const std::vector<std::string>& files,
                                     int64_t batch) {
  CalibrationCalls result;
  const std::optional<CallSize> size = call_size(module, batch);
  for (const InputSet& set : collect_inputs(module, files)) {
    if (!size || !set.values[size->input].isTensor() || set.values[size->input].toTensor().dim() == 0) {
      result.calls.push_back(set.values);
      continue;
    }
    const int64_t entries = set.values[size->input].toTensor().size(0);
    for (int64_t begin = 0; begin < entries; begin += size->entries) {
      const int64_t end = std::min(begin + size->entries, entries);
      if (size->fixed && end - begin < size->entries) {
        const int64_t left = end - begin;
        result.notes.push_back(
            fmt::format("{}: the last {} not used: this model takes {} at a time", set.origin,
                        left == 1 ? "entry is" : fmt::format("{} entries are", left), size->entries));
        break;
      }
      result.calls.push_back(slice_call(set, entries, begin, end));
      if (begin == 0) require_fitting(module, set.origin, result.calls.back());
    }
  }
  if (result.calls.empty())
    throw Error(ErrorCode::kInvalidArgument, "--data has no entries to calibrate with");
  return result;
}

}  // namespace halftone::cli
