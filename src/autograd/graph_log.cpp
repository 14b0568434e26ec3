#include "autograd/graph_log.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/errors.h"
#include "base/log.h"

namespace halftone {

GraphLog graph_log_of(const std::optional<GraphLog>& wanted) {
  if (wanted) return *wanted;
  const char* variable = std::getenv("HALFTONE_LOG_GRAPHS");
  if (!variable || !*variable) return {};
  const std::string value = variable;
  return value == "log" ? GraphLog{true, ""} : GraphLog{false, value};
}

void log_graph(const GraphLog& log, const std::string& name, int64_t number, const char* part,
               const Graph& graph) {
  if (!log.to_log && log.folder.empty()) return;
  const std::string text = print_graph(graph);
  if (log.to_log)
    log_message(LogLevel::kInfo,
                fmt::format("{} graph of {} (compilation {}):\n{}", part, name, number, text));
  if (log.folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(log.folder, failed);
  std::string file = name;
  for (char& letter : file) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  const std::filesystem::path path =
      std::filesystem::path(log.folder) / fmt::format("{}_{}.{}.txt", file, number, part);
  std::ofstream stream(path);
  stream << text;
  if (!stream.flush()) fail(ErrorCode::kIo, "cannot write the graph to {}", path.string());
}

}  // namespace halftone
