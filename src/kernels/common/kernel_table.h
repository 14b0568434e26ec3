// The shape every operation's kernel table has, and the one way to choose from it.
//
// A table is a constexpr array, best kernel first and the scalar one, which takes every problem, last. An
// entry has at least
//   const char* name;                       // operation_types_tile_instruction-set
//   Isa isa;                                // the level it needs
//   const char* (*refuse)(const Problem&);  // nullptr if it takes the problem, else the reason (a literal)
// Tests and benchmarks loop over the table; nothing else knows a kernel by name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/errors.h"
#include "cpu/isa.h"

namespace halftone::kernels {

/// What became of one table entry in a choice.
struct KernelVerdict {
  const char* name;
  bool chosen;
  std::string reason;  ///< why not; empty for the chosen one
};

/// Why `kernel` cannot run `problem` at `isa`, or nullptr if it can.
template <typename Kernel, typename Problem>
const char* refusal(const Kernel& kernel, const Problem& problem, Isa isa) {
  if (kernel.isa > isa) return "needs a higher instruction set than is active";
  return kernel.refuse(problem);
}

/// Every entry of the table with its verdict, in table order.
template <typename Kernel, typename Problem>
std::vector<KernelVerdict> explain_choice(std::span<const Kernel> table, const Problem& problem, Isa isa) {
  std::vector<KernelVerdict> verdicts;
  bool found = false;
  for (const Kernel& kernel : table) {
    const char* reason = refusal(kernel, problem, isa);
    const bool chosen = reason == nullptr && !found;
    verdicts.push_back({kernel.name, chosen,
                        reason != nullptr ? reason
                        : chosen          ? ""
                                          : "a better kernel takes it"});
    found = found || chosen;
  }
  return verdicts;
}

/// The first entry that does not refuse. Throws kUnsupported with the last refusal when all do.
template <typename Kernel, typename Problem>
const Kernel& choose_kernel(std::span<const Kernel> table, const Problem& problem, Isa isa) {
  const char* reason = "the table is empty";
  for (const Kernel& kernel : table) {
    reason = refusal(kernel, problem, isa);
    if (reason == nullptr) return kernel;
  }
  fail(ErrorCode::kUnsupported, "no kernel takes this problem: {}", reason);
}

}  // namespace halftone::kernels
