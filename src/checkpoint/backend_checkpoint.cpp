// save and load: lifecycle backends as .ht files.
#include "backend/lifecycle/backend_access.h"
#include "base/errors.h"
#include "base/log.h"
#include "checkpoint/container/ht_writer.h"
#include "checkpoint/graph_content.h"
#include "checkpoint/records/backend_record.h"
#include "checkpoint/records/sample_values.h"
#include "graph/aten/torch_errors.h"
#include "halftone/checkpoint/checkpoint.h"

namespace halftone {
namespace {

void require_savable(const BackendContent& content) {
  const std::string type = content.recipe->type();
  if (content.state == BackendState::kInit)
    fail(ErrorCode::kState, "cannot save backend {} in state {}, backend should be built first", type,
         to_string(content.state));
  const std::string refusal = content.recipe->refuse_to_save();
  if (!refusal.empty()) fail(ErrorCode::kUnsupported, "cannot save backend {}: {}", type, refusal);
  if (!content.original && !content.ready)
    fail(ErrorCode::kState, "cannot save backend {} in state {}: its model is not there", type,
         to_string(content.state));
}

/// The model that goes into the file.
std::shared_ptr<const GraphModule> model_of(const BackendContent& content, bool original) {
  if (original) {
    if (content.original) return content.original;
    fail(ErrorCode::kUnsupported,
         "cannot save the original model of backend {}: it was loaded from a file that holds the converted "
         "one",
         content.recipe->type());
  }
  if (content.ready) return content.ready;
  return content.recipe->prepare(content.original, content.samples, /*cache_dir=*/"").module;
}

/// Samples without content (of a backend that was loaded so) have nothing to store.
void require_data(const std::vector<at::Tensor>& tensors, const std::string& type) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_meta())
      fail(ErrorCode::kUnsupported, "cannot save the samples of backend {}: only their shapes are known",
           type);
  }
}

/// A graph's own sample inputs as the one sample of a backend.
std::vector<Sample> sample_of(const GraphModule& module) {
  if (module.sample_inputs.empty()) return {};
  const CallSpec& call = module.call_spec();
  const auto middle = module.sample_inputs.begin() + static_cast<std::ptrdiff_t>(call.args.leaf_count());
  Sample sample;
  sample.args = unflatten(call.args, {module.sample_inputs.begin(), middle}).toTupleRef().elements().vec();
  for (const auto& item : unflatten(call.kwargs, {middle, module.sample_inputs.end()}).toGenericDict())
    sample.kwargs.emplace(item.key().toStringRef(), item.value());
  return {std::move(sample)};
}

BackendContent plain_graph(const HtFile& file) {
  log(LogLevel::kInfo, "{}: holds a graph without a backend; it becomes a HalftoneBackend", file.name());
  auto graph = restore_graph(file);
  BackendContent content;
  content.recipe = halftone_backend_recipe();
  content.samples = sample_of(*graph);
  content.original = std::move(graph);
  return content;
}

BackendContent content_of(const HtFile& file) {
  const HtLifecycle lifecycle = read_lifecycle(file.metadata());
  if (!lifecycle.backend) return plain_graph(file);
  BackendContent content;
  content.recipe = recipe_of(*lifecycle.backend, file.metadata());
  content.device = device_of(*lifecycle.backend, file.metadata());
  content.tuning = lifecycle.tuning;
  auto graph = restore_graph(file);
  if (lifecycle.backend->converted) {
    content.ready = std::move(graph);
  } else {
    content.original = std::move(graph);
  }
  TensorRestorer restorer(file);
  content.samples = restore_samples(lifecycle.samples, restorer);
  return content;
}

}  // namespace

void save(const Backend& backend, const std::string& path, const SaveBackendOptions& options) {
  const BackendContent content = BackendAccess::content(backend);
  require_savable(content);
  const auto model = model_of(content, options.original);
  const auto samples = options.sample_data ? tensors_in(content.samples) : std::vector<at::Tensor>{};
  require_data(samples, content.recipe->type());

  const CollectOptions collect{
      .packed = options.packed, .sample_inputs = options.sample_data, .extra = samples};
  const GraphContent stored = collect_graph(*model, collect);
  HtLifecycle lifecycle;
  lifecycle.backend = {content.recipe->type(), content.recipe->config(), content.device.str(),
                       std::string(to_string(content.state)), !options.original};
  lifecycle.tuning = content.tuning;
  const RecordSource source = options.sample_data ? RecordSource(stored.extra) : RecordSource();
  lifecycle.samples = store_samples(content.samples, source);
  auto metadata = describe_graph(*model, stored, collect);
  metadata.merge(lifecycle_metadata(lifecycle));
  require_readable_graph(metadata, path);
  write_ht(path, stored.stored.stored, metadata);
}

Backend load(const std::string& path, const OpenOptions& options) {
  return guarded(path, [&] {
    const HtFile file = HtFile::open(path, options.map ? LoadMode::kMap : LoadMode::kRead);
    file.require_readable(options.verify);
    return BackendAccess::loaded(content_of(file));
  });
}

}  // namespace halftone
