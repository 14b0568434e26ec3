// Whether other programs took processor time away while something was timed.
#pragma once

#include "halftone/tune/measure.h"

namespace halftone {

/// Looks at this machine, once for each turn. A turn is disturbed if
/// - the programs that are known to be busy used more than a twentieth of one processor during the turn (a
///   fifth where it takes 10 ms or more), by their own clocks (OtherPrograms): a short turn may lie between two
///   time slices of theirs, and then it is as good as on a quiet machine;
/// - all others used more than a fifth of one processor in the last quarter of a second (Linux: /proc/stat);
/// - a fixed computation of about 0.1 ms on all threads right after the turn takes a thread 1.3 times the best
///   of the last ones, or begins late: another program had the processor (or the clock went down).
/// HALFTONE_BUSY=ignore switches it off: nothing is ever disturbed then. HALFTONE_BUSY=always says that
/// everything is, for tests of scripts.
MachineWatch watch_this_machine();

}  // namespace halftone
