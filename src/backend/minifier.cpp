// minify(): makes a failing graph smaller step by step, as long as the backend fails in the same way.
#include <algorithm>
#include <cctype>

#include "backend/shrink.h"
#include "base/errors.h"

namespace halftone {
namespace {

/// Thrown inside a search whose trials are used up.
struct OutOfTrials {};

/// The first line of a message without the names and numbers in it: those change as the graph shrinks, while
/// the failure stays the same.
std::string head_of(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  std::string head;
  for (size_t i = 0; i < line.size();) {
    const auto skip_while = [&](auto is_part) {
      while (i < line.size() && is_part(static_cast<unsigned char>(line[i]))) ++i;
    };
    const auto c = static_cast<unsigned char>(line[i]);
    if (c == '"') {
      const size_t end = line.find('"', i + 1);
      i = end == std::string::npos ? line.size() : end + 1;
      head += "\"\"";
    } else if (c == '%') {
      ++i;
      skip_while([](unsigned char x) { return std::isalnum(x) || x == '_' || x == '.'; });
      head += '%';
    } else if (std::isdigit(c)) {
      skip_while([](unsigned char x) { return std::isdigit(x) || x == '.'; });
      head += '0';
    } else {
      head += line[i++];
    }
  }
  return head;
}

class Search {
 public:
  Search(const GraphCase& start, const GraphCompiler& backend, const MinifyOptions& options)
      : best_(copy_of(start)), backend_(backend), options_(options) {}

  MinifiedCase run() {
    const auto failure = find_failure(best_, backend_, options_);
    if (!failure)
      fail(ErrorCode::kInvalidArgument,
           "{}: the backend does not fail on this: all results are within {:g} * (1 + |y|) of the "
           "interpreter's y, or within eight steps of their type",
           best_.module->name, options_.tolerance);
    failure_ = *failure;
    MinifiedCase result;
    result.nodes_before = size();
    try {
      shrink();
    } catch (const OutOfTrials&) {
      result.complete = false;
    }
    result.smallest = best_;
    result.failure = failure_;
    result.nodes_after = size();
    result.trials = trials_;
    return result;
  }

 private:
  size_t size() const { return best_.module->graph().nodes().size(); }

  void shrink() {
    halve();
    take(with_fixed_sizes(best_, record_values(best_)));
    take(without_mutation_outputs(best_));
    // One step may make another possible. Each that succeeds leaves fewer nodes, outputs or inputs.
    for (bool smaller = true; smaller;) {
      smaller = false;
      if (cut()) smaller = true;
      if (drop_outputs()) smaller = true;
      if (replace_nodes()) smaller = true;
      if (take(without_unused_inputs(best_))) smaller = true;
    }
  }

  /// Whether the candidate fails as before; then it is the best.
  bool take(std::optional<GraphCase> candidate) {
    if (!candidate) return false;
    if (trials_ >= options_.max_trials) throw OutOfTrials();
    ++trials_;
    if (options_.progress) options_.progress(trials_, options_.max_trials, fmt::format("{} nodes", size()));
    const auto failure = try_find_failure(*candidate);
    if (!failure || failure->kind != failure_.kind) return false;
    if (failure->kind != FailureKind::kAccuracy && head_of(failure->message) != head_of(failure_.message))
      return false;
    best_ = *std::move(candidate);
    failure_ = *failure;
    return true;
  }

  /// Nothing even if the interpreter fails: such a graph says nothing about the backend.
  std::optional<BackendFailure> try_find_failure(const GraphCase& candidate) const {
    try {
      return find_failure(candidate, backend_, options_);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  /// Halves as long as one of the halves fails as before. All of it is the work of two trials of the whole
  /// graph, where bisecting alone takes one for each power of two; what fails by more than one half has is
  /// left to the steps below.
  void halve() {
    while (size() > 1) {
      const size_t middle = size() / 2;
      if (!take(cut_end(best_, middle)) && !take(cut_begin(best_, middle))) return;
      // Most inputs are weights of the other half; each trial copies them.
      take(without_unused_inputs(best_));
    }
  }

  /// Bisects for the shortest beginning that fails.
  bool cut() {
    bool smaller = false;
    for (size_t passes = 0; passes + 1 < size();) {
      const size_t middle = passes + (size() - passes) / 2;
      if (take(cut_end(best_, middle))) {
        smaller = true;
      } else {
        passes = middle;
      }
    }
    return smaller;
  }

  /// Tries to take away ever smaller runs of `count()` things.
  template <typename Count, typename Without>
  bool take_away(Count count, Without without) {
    bool smaller = false;
    for (size_t chunk = std::max<size_t>(count() / 2, 1); chunk > 0; chunk /= 2) {
      for (size_t begin = 0; begin < count();) {
        const size_t before = count();
        if (take(without(begin, std::min(begin + chunk, before)))) {
          smaller = true;
          // What only the run needed may be gone too, also before it.
          begin -= std::min(begin, before - count() - std::min(before - count(), chunk));
        } else {
          begin += chunk;
        }
      }
    }
    return smaller;
  }

  bool drop_outputs() {
    return take_away([this] { return best_.module->graph().outputs().size(); },
                     [this](size_t begin, size_t end) { return without_outputs(best_, begin, end); });
  }

  bool replace_nodes() {
    const RecordedValues values = record_values(best_);
    return take_away([this] { return size(); },
                     [&](size_t begin, size_t end) { return nodes_as_inputs(best_, begin, end, values); });
  }

  GraphCase best_;
  const GraphCompiler& backend_;
  const MinifyOptions& options_;
  BackendFailure failure_;
  int64_t trials_ = 0;
};

}  // namespace

MinifiedCase minify(const GraphCase& graph_case, const GraphCompiler& backend, const MinifyOptions& options) {
  required(graph_case.module, "minify: the module of the case");
  required(backend, "minify: the backend");
  return Search(graph_case, backend, options).run();
}

}  // namespace halftone
