// The child process of the tests of isolation: what `halftone trial` is to `halftone tune`.
#include <cstdio>
#include <string>
#include <vector>

#include "tune/test_support.h"

int main(int argc, char** argv) {
  using namespace halftone;
  const auto known = [](const std::shared_ptr<const ChangingKind>& kind) {
    register_backend_type({kind->type(), "of the tests", [kind](std::string_view) { return kind; }});
  };
  known(napping_kind("Fast", 1));
  known(throwing_kind());
  known(crashing_kind());
  known(hanging_kind());
  std::puts("a library's chatter");
  std::puts(run_trial(std::vector<std::string>(argv + 1, argv + argc)).c_str());
  return 0;
}
