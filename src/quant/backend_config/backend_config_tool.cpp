// For the oracle test: backend_config_tool builtin NAME | json FILE | text FILE.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "halftone/base/error.h"
#include "halftone/ptq/backend_config.h"

namespace {

halftone::BackendConfig read_config(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return halftone::BackendConfig::from_dict(text, path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  try {
    if (what == "builtin") std::puts(halftone::builtin_backend_config(argv[2]).to_dict().c_str());
    if (what == "json") std::puts(read_config(argv[2]).to_dict().c_str());
    if (what == "text") std::puts(read_config(argv[2]).to_text().c_str());
  } catch (const halftone::Error& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
  return 0;
}
