// Whether other programs took processor time away while something was timed.
#pragma once

#include "halftone/tune/measure.h"

namespace halftone {

/// Looks at this machine, once for each turn, in two ways:
/// - the processor time that other programs used in the last quarter of a second (Linux: /proc/stat). More
///   than a fifth of one processor is a disturbance;
/// - a fixed computation of about 0.1 ms on all threads right after the turn. If a thread takes 1.3 times
///   the best of the last ones, or begins late, another program had the processor (or the clock went down).
/// HALFTONE_BUSY=ignore switches it off: nothing is ever disturbed then. HALFTONE_BUSY=always says that
/// everything is, for tests of scripts.
MachineWatch watch_this_machine();

}  // namespace halftone
