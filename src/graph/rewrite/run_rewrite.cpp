#include "graph/rewrite/run_rewrite.h"

#include "base/errors.h"
#include "graph/aten/torch_errors.h"

namespace halftone {
namespace {

bool rewrite_or_throw(std::string_view name, const std::function<bool()>& rewrite) {
  try {
    return rewrite();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalidArgument, "the pass {} cannot take this graph: {}", name, error_text(error));
  }
}

}  // namespace

bool run_rewrite(Graph& graph, std::string_view name, const std::function<bool()>& rewrite) {
  if (!rewrite_or_throw(name, rewrite)) return false;
  graph.erase_dead_nodes();
  const std::vector<std::string> problems = lint(graph);
  if (!problems.empty())
    fail(ErrorCode::kInternal, "the pass {} broke the graph: {}", name, problems.front());
  return true;
}

}  // namespace halftone
