#include "checkpoint/records/backend_record.h"

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "graph/aten/torch_errors.h"

namespace halftone {
namespace {

void require_no_refusal(const std::string& refusal, const HtBackend& backend, const std::string& place) {
  if (refusal.empty()) return;
  fail(ErrorCode::kUnsupported, "{}: a backend {} may not come from a file: {}", place,
       quote_text(backend.type), refusal);
}

}  // namespace

void require_no_code(const HtBackend& backend, const HtMetadata& metadata) {
  for (const BackendType& type : backend_types()) {
    if (type.type == backend.type)
      require_no_refusal(type.not_from_files, backend, metadata.place(ht::kBackendKey));
  }
}

std::shared_ptr<const BackendRecipe> recipe_of(const HtBackend& backend, const HtMetadata& metadata) {
  require_no_code(backend,
                  metadata);  // before the config is looked at: a file cannot give itself a permission
  const std::string place = metadata.place(ht::kBackendKey);
  std::shared_ptr<const BackendRecipe> recipe;
  try {
    recipe = guarded(place, [&] { return make_backend_recipe(backend.type, backend.config); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    fail(ErrorCode::kUnsupported, "{}", error.what());
  }
  require_no_refusal(recipe->refuse_to_save(), backend, place);
  return recipe;
}

c10::Device device_of(const HtBackend& backend, const HtMetadata& metadata) {
  try {
    return c10::Device(backend.device);
  } catch (const std::exception&) {
    fail(ErrorCode::kCorruptFile, "{}.device: {} is no device", metadata.place(ht::kBackendKey),
         quote_text(backend.device));
  }
}

}  // namespace halftone
