#include "compiler/passes/summand.h"

namespace halftone::compiler {

std::optional<Summand> try_summand(const Node& sum, std::string_view target,
                                   bool (*takes)(const Node& product, const Value* residual)) {
  if (!sum.is("aten::add.Tensor") || try_number(sum, "alpha") != 1.0 || !is_float(sum.output()))
    return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSides = {
      {{"other", "self"}, {"self", "other"}}};
  for (const auto& [mine, other] : kSides) {
    const Value* y = try_tensor(sum, mine);
    Value* residual = try_tensor(sum, other);
    if (y == nullptr || residual == nullptr || y == residual || !is_float(residual)) continue;
    Node* product = try_producer(y, {target});
    const bool free = product != nullptr && y->index() == 0 && only_user(y) == &sum &&
                      is_absent(*product, "residual") && same_sizes(y, residual);
    if (free && takes(*product, residual)) return Summand{product, residual};
  }
  return std::nullopt;
}

std::vector<NamedArgument> inputs_with_residual(const Summand& summand) {
  std::vector<NamedArgument> inputs = summand.product->inputs();
  for (NamedArgument& input : inputs) {
    if (input.name == "residual") input.value = summand.residual;
  }
  return inputs;
}

}  // namespace halftone::compiler
