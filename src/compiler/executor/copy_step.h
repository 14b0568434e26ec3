// Steps that copy a tensor: to other strides, or to another dtype.
#pragma once

#include <memory>

#include "compiler/executor/plan.h"

namespace halftone::compiler {

/// `to` has the sizes of `from` and shares no memory with it.
std::unique_ptr<Step> make_copy_step(const Slot& from, const Slot& to);

/// Several copies as one step.
std::unique_ptr<Step> make_copies_step(std::vector<std::unique_ptr<Step>> copies);

}  // namespace halftone::compiler
