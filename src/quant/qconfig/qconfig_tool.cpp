// For the oracle test: qconfig_tool default BACKEND | names | json FILE. Prints a mapping.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "halftone/base/error.h"
#include "halftone/ptq/qconfig.h"

namespace {

halftone::QConfigMapping mapping_of(const std::string& what, const char* argument) {
  if (what == "default") return halftone::default_qconfig_mapping(argument);
  halftone::QConfigMapping mapping;
  if (what == "names") {
    for (const std::string& name : halftone::qconfig_names())
      mapping.set_module_name(name, halftone::qconfig_by_name(name));
    return mapping;
  }
  std::ifstream file(argument, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return halftone::QConfigMapping::from_dict(text, argument);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    std::puts(mapping_of(argv[1], argc > 2 ? argv[2] : "").to_dict().c_str());
  } catch (const halftone::Error& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
  return 0;
}
