// Checks the results of a compiled function: as many values as the graph has, of the right kinds.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "base/errors.h"
#include "halftone/graph/graph.h"

namespace halftone {

class ResultCheck {
 public:
  /// `who`: made the function, for messages: "backend \"mine\"".
  explicit ResultCheck(std::string who) : who_(std::move(who)) {}
  /// One more result: a value of the graph, or a constant.
  void expect(const Argument& output) {
    expect(output.value() && output.value()->type() == ValueType::kTensor);
  }
  void expect(bool tensor) { tensors_.push_back(tensor); }
  const std::string& who() const { return who_; }

  /// kInvalidArgument.
  void operator()(const std::vector<c10::IValue>& results) const {
    if (results.size() != tensors_.size()) {
      fail(ErrorCode::kInvalidArgument, "{}: its function gave {} results where the graph has {}", who_,
           results.size(), tensors_.size());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!tensors_[i] || (results[i].isTensor() && results[i].toTensor().defined())) continue;
      fail(ErrorCode::kInvalidArgument, "{}: result {} of its function is {} where the graph gives a tensor",
           who_, i, results[i].isTensor() ? "an undefined tensor" : results[i].tagKind());
    }
  }

 private:
  std::string who_;
  std::vector<bool> tensors_;
};

}  // namespace halftone
