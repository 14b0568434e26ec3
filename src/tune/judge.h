// Which of the measured candidates are valid, and which of them is taken. Knows numbers only, so that a
// strategy can be applied to measurements of another day.
#pragma once

#include "halftone/tune/tune.h"

namespace halftone {

/// Sets the verdict and reason of every candidate that ran: valid, or dropped with the numbers.
void judge(std::vector<CandidateReport>& candidates, const Strategy& strategy, double min_cosine);

/// Judges, asks the strategy, and fills in chosen, won, the chosen one's verdict and the notes about it.
/// Candidates that failed or were not tried stay as they are. kInvalidArgument if not even eager ran.
void choose(TuneReport& report, const Strategy& strategy);

/// latency_ms and throughput of the medians of its times, as Strategy says.
void score(CandidateReport& candidate, const std::vector<SampleShape>& shapes);

}  // namespace halftone
