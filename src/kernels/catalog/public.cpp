// The public list of kernels (halftone/cli/kernels.h).
#include "cpu/isa.h"
#include "halftone/cli/kernels.h"
#include "kernels/catalog/catalog.h"

namespace halftone {

std::vector<KernelInfo> list_kernels() {
  const Isa active = active_isa();
  std::vector<KernelInfo> all;
  for (const kernels::CatalogEntry& entry : kernels::kernel_catalog()) {
    all.push_back(
        {std::string(entry.operation), entry.name, std::string(to_string(entry.isa)), entry.isa <= active});
  }
  return all;
}

std::vector<KernelChoice> explain_kernels(int64_t m, int64_t n, int64_t k, std::string_view scheme) {
  std::vector<KernelChoice> choices;
  for (const kernels::KernelVerdict& verdict : kernels::explain_linear(m, n, k, scheme)) {
    choices.push_back({verdict.name, verdict.chosen, verdict.reason});
  }
  return choices;
}

std::string active_instruction_set() {
  return std::string(to_string(active_isa()));
}

}  // namespace halftone
