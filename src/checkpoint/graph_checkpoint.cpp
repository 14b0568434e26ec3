// save_checkpoint and load_checkpoint: captured models as .ht files.
#include "checkpoint/container/ht_writer.h"
#include "checkpoint/graph_content.h"
#include "checkpoint/records/backend_record.h"
#include "graph/aten/torch_errors.h"
#include "halftone/checkpoint/checkpoint.h"

namespace halftone {

void save_checkpoint(const GraphModule& module, const std::string& path, const SaveOptions& options) {
  const CollectOptions collect{.packed = options.packed};
  const GraphContent content = collect_graph(module, collect);
  const auto metadata = describe_graph(module, content, collect);
  require_readable_graph(metadata, path);
  write_ht(path, content.stored.stored, metadata);
}

std::shared_ptr<GraphModule> load_checkpoint(const std::string& path, const OpenOptions& options) {
  return guarded(path, [&] {
    const HtFile file = HtFile::open(path, options.map ? LoadMode::kMap : LoadMode::kRead);
    file.require_readable(options.verify);
    // The graph alone is asked for; but a file that wants to run code is not read at all.
    const HtLifecycle lifecycle = read_lifecycle(file.metadata());
    if (lifecycle.backend) require_no_code(*lifecycle.backend, file.metadata());
    return restore_graph(file);
  });
}

}  // namespace halftone
