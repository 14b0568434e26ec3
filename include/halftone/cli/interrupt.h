// Unstable: for the command line only, may change in any version.
// For programs: Ctrl-C ends them at once and leaves no half-written file behind.
#pragma once

#include "halftone/base/api.h"

namespace halftone {

/// From now on SIGINT and SIGTERM remove the temporary files that this process is writing, say so on stderr
/// ("interrupted; nothing written" if no file was finished) and end the process with 130 or 143, whatever
/// its threads are doing. Files that were finished stay. The library itself never calls this.
HALFTONE_API void end_on_interrupt();

}  // namespace halftone
