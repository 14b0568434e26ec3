#include "inspect/inspect_submodules.h"

#include "common/console.h"
#include "halftone/tune/modules.h"

namespace halftone::cli {

void inspect_submodules(const std::shared_ptr<const GraphModule>& module, const InputSet& inputs, bool json,
                        Console& console) {
  const Samples samples({sample_from_flat(*module, inputs.values)});
  const halftone::InspectReport report = halftone::inspect(module, samples);
  console.result(json ? report.to_json() + "\n" : report.to_text());
}

}  // namespace halftone::cli
