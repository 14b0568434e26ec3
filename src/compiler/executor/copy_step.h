// A step that copies a tensor: to other strides, or to another dtype.
#pragma once

#include "compiler/executor/aten_step.h"

namespace halftone::compiler {

class CopyStep final : public Step {
 public:
  CopyStep(Slot from, Slot to) : from_(std::move(from)), to_(std::move(to)) {}
  void run(Frame& frame) const override { tensor_at(to_, frame).copy_(tensor_at(from_, frame)); }
  std::string kernel() const override { return "copy"; }

 private:
  Slot from_, to_;
};

}  // namespace halftone::compiler
