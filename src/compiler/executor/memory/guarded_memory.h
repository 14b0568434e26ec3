// For tests and fuzzing: memory that faults at the first byte past its end. Not for use in programs: every
// allocation is a mapping of its own.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace halftone::compiler {

/// From now on, each buffer of a plan (values, results, scratch memory) made by any thread, and each tensor
/// that ATen allocates on the CPU, lies in a mapping of its own whose last byte is followed by an
/// inaccessible page. Freed memory is inaccessible at once, so late accesses fault too. What is left over
/// before the first byte and, where memory must be aligned, behind the last one holds a pattern that is
/// compared when the memory is freed; a difference aborts the process with a message. Under the address
/// sanitizer no access of Halftone's own to it is allowed. Memory that exists already stays as it is, so
/// switch before compiling a model. `false` restores the ordinary allocators; tensors and plans of both kinds
/// may be freed at any time.
void set_guarded_plan_memory(bool on);
bool guarded_plan_memory();

/// `bytes` of zeros, ending at an inaccessible page but for what `alignment`, a power of two, asks for.
/// c10::Error if the system has no memory, as c10's own allocators.
at::DataPtr guarded_allocate(size_t bytes, size_t alignment);

}  // namespace halftone::compiler
