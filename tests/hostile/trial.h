// One hostile file: loaded, run by the interpreter and by the compiler, answers compared.
#pragma once

#include <set>
#include <string>

namespace halftone::hostile {

struct TrialResult {
  enum class Outcome {
    kRefused,   ///< a halftone::Error at load
    kErrors,    ///< loaded; the interpreter and the compiled model both give a halftone::Error
    kCautious,  ///< the interpreter answers, the compiled model gives a halftone::Error
    kSame,      ///< both answer the same
    kForgiven,  ///< both answer, and what differs says nothing, for the reason that `detail` gives
    kWrong,     ///< anything else: a defect of Halftone
  };
  Outcome outcome = Outcome::kWrong;
  std::string detail;             ///< the error, or what is wrong
  std::set<std::string> steps;    ///< "target kernel" of each step that the plan had
  std::set<std::string> layouts;  ///< of packed blocks that the file offered
};

/// `path`: a .ht or a .pt2. Everything but a halftone::Error is a defect.
TrialResult try_file(const std::string& path);

}  // namespace halftone::hostile
