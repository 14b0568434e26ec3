// The Unicode tables, as spans.
#include "text/unicode_tables.h"

namespace halftone {
namespace {

#include "text/unicode_tables.inc"

}  // namespace

std::span<const ClassRun> class_runs() {
  return kClassRuns;
}
std::span<const ClassRun> combining_runs() {
  return kCombiningRuns;
}
std::span<const LowerRun> lower_runs() {
  return kLowerRuns;
}
std::span<const Decomposition> decompositions() {
  return kDecompositions;
}
std::span<const char32_t> decomposed() {
  return kDecomposed;
}
std::span<const Composition> compositions() {
  return kCompositions;
}

}  // namespace halftone
