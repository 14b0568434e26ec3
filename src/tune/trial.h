// A candidate in a process of its own, before it may run in this one.
//
// The parent writes the model with one call's inputs to a .ht file in a folder of its own, and starts
//   COMMAND… MODEL.ht TYPE CONFIG THREADS
// The child loads it, prepares the recipe, runs it once, and prints one line of JSON: {"ok":true} or
// {"ok":false,"error":"…"}. Anything else (a signal, another exit code, no such line, too much time) is the
// candidate's failure. The child is started with posix_spawn: a plain fork of a process with OpenMP threads
// may hang.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "archive/bytes/unfinished.h"
#include "halftone/backend/recipes.h"
#include "halftone/tune/tune.h"

namespace halftone {

class TrialRunner {
 public:
  /// kIo if the model cannot be written.
  TrialRunner(const TuneIsolation& isolation, const GraphModule& module, const Sample& sample);
  ~TrialRunner();
  TrialRunner(const TrialRunner&) = delete;
  TrialRunner& operator=(const TrialRunner&) = delete;

  struct Outcome {
    std::string failure;  ///< what went wrong; empty: it ran
    bool killed = false;  ///< by a signal: what would happen to this process too
  };
  Outcome run(const BackendRecipe& recipe) const;

 private:
  TuneIsolation isolation_;
  std::filesystem::path folder_;
  std::vector<Unfinished> unfinished_;
};

enum class ChildEnd {
  kDone,      ///< with code 0
  kExitCode,  ///< with another one
  kSignal,
  kTimeout,  ///< killed here
  kMemory,   ///< killed here
};

/// How a program ended that was given `arguments` (the program first).
struct ChildOutcome {
  std::string output;   ///< of stdout
  std::string errors;   ///< the end of stderr
  std::string failure;  ///< "it crashed (SIGSEGV)", "it took more than 5 s", …; empty: it ended with code 0
  ChildEnd end = ChildEnd::kDone;
};
/// `memory`: bytes that the child may keep in memory beside files that it maps, looked at every 10 ms; 0: no
/// limit. kIo if it cannot be started.
ChildOutcome run_child(const std::vector<std::string>& arguments, double seconds, int64_t memory = 0);

}  // namespace halftone
