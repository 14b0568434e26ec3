// The child process of the tests of isolation: what `halftone trial` is to `halftone tune`.
#include <cstdio>
#include <string>
#include <vector>

#include "tune/test_support.h"

int main(int argc, char** argv) {
  using namespace halftone;
  const auto known = [](const std::shared_ptr<const ChangingRecipe>& recipe) {
    register_backend_type({recipe->type(), "of the tests", [recipe](std::string_view) { return recipe; }});
  };
  known(napping_recipe("Fast", 1));
  known(throwing_recipe());
  known(crashing_recipe());
  known(hanging_recipe());
  std::puts("a library's chatter");
  std::puts(run_trial(std::vector<std::string>(argv + 1, argv + argc)).c_str());
  return 0;
}
