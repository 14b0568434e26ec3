// fuse_norm: layer_norm, native_layer_norm, rms_norm and x · rsqrt(mean(x²) + eps) · w over the last
// dimension become halftone::norm.
#include <limits>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct Norm {
  Value* result = nullptr;
  Value* x = nullptr;
  Value *gamma = nullptr, *beta = nullptr;
  std::string_view kind;
  double eps = 0;
};

bool is_over_last_dimension(const Node& node, const Value* x) {
  const auto shape = try_integers(node, "normalized_shape");
  return shape && shape->size() == 1 && rank(x) >= 2 && same(x->meta()->sizes.back(), shape->front());
}

bool first_output_only(const Node& node) {
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (!node.output(i)->users().empty()) return false;
  }
  return true;
}

std::optional<Norm> try_operator_norm(const Node& node) {
  const bool layer = node.is("aten::layer_norm") || node.is("aten::native_layer_norm");
  const bool rms = node.is("aten::rms_norm") || node.is("aten::_fused_rms_norm");
  if ((!layer && !rms) || !first_output_only(node)) return std::nullopt;
  Norm norm{node.output(), try_tensor(node, "input"), try_tensor(node, "weight"), try_tensor(node, "bias"),
            layer ? "layer" : "rms"};
  if (norm.x == nullptr || !is_over_last_dimension(node, norm.x)) return std::nullopt;
  const auto eps = try_number(node, "eps");
  if (!eps && !is_absent(node, "eps")) return std::nullopt;
  norm.eps = eps.value_or(std::numeric_limits<float>::epsilon());  // rms_norm's own choice for float32
  return norm;
}

// x where `square` is x².
Value* try_root(const Value* square) {
  if (const Node* power = try_producer(square, {"aten::pow.Tensor_Scalar"})) {
    return try_number(*power, "exponent") == 2.0 ? try_tensor(*power, "self") : nullptr;
  }
  if (const Node* product = try_producer(square, {"aten::mul.Tensor"})) {
    Value* a = try_tensor(*product, "self");
    return a == try_tensor(*product, "other") ? a : nullptr;
  }
  if (const Node* plain = try_producer(square, {"aten::square"})) return try_tensor(*plain, "self");
  return nullptr;
}

// x and eps where `value` is rsqrt(mean(x²) + eps) over the last dimension.
std::optional<std::pair<Value*, double>> try_inverse_rms(const Value* value, const Constants& constants) {
  const Node* rsqrt = try_producer(value, {"aten::rsqrt"});
  const Node* sum = rsqrt != nullptr
                        ? try_producer(try_tensor(*rsqrt, "self"), {"aten::add.Tensor", "aten::add.Scalar"})
                        : nullptr;
  if (sum == nullptr || try_number(*sum, "alpha") != 1.0) return std::nullopt;
  const auto eps = constants.number(operand(*sum, "other"));
  const Node* mean = try_producer(try_tensor(*sum, "self"), {"aten::mean.dim"});
  if (!eps || mean == nullptr || try_flag(*mean, "keepdim") != true || !is_absent(*mean, "dtype"))
    return std::nullopt;
  Value* x = try_root(try_tensor(*mean, "self"));
  const auto dims = try_integers(*mean, "dim");
  if (x == nullptr || !dims || dims->size() != 1 || rank(x) < 2) return std::nullopt;
  if (positive_dim(dims->front(), rank(x)) + 1 != static_cast<int64_t>(rank(x))) return std::nullopt;
  return std::pair(x, *eps);
}

std::optional<Norm> try_scaled_rms(const Node& node, const Constants& constants) {
  if (!node.is("aten::mul.Tensor")) return std::nullopt;
  for (const auto& [mine, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    const auto found = try_inverse_rms(try_tensor(node, mine), constants);
    if (found && found->first == try_tensor(node, other) && same_sizes(node.output(), found->first))
      return Norm{node.output(), found->first, nullptr, nullptr, "rms", found->second};
  }
  return std::nullopt;
}

// With the weight that is multiplied afterwards, where there is one.
std::optional<Norm> try_spelled_rms(const Node& node, const Constants& constants) {
  auto norm = try_scaled_rms(node, constants);
  const Node* user = norm ? only_user(norm->result) : nullptr;
  if (user == nullptr || !user->is("aten::mul.Tensor")) return norm;
  Value* a = try_tensor(*user, "self");
  Value* weight = a == norm->result ? try_tensor(*user, "other") : a;
  if (weight == nullptr || rank(weight) != 1 || weight == norm->result) return norm;
  if (!same(weight->meta()->sizes[0], norm->x->meta()->sizes.back())) return norm;
  norm->gamma = weight;
  norm->result = user->output();
  return norm;
}

class NormFuser {
 public:
  explicit NormFuser(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    for (Node* node : snapshot(context_.graph)) {
      if (node->op() == nullptr || node->outputs().empty()) continue;
      auto norm = try_operator_norm(*node);
      if (!norm) norm = try_spelled_rms(*node, constants_);
      if (norm) try_fuse(*norm, *node);
    }
    if (fused_ > 0) context_.note("{}", counted(fused_, "norm"));
    return fused_ > 0;
  }

 private:
  bool is_row(const Value* value) const {
    return value == nullptr || (is_float(value) && rank(value) == 1 && constants_.holds(value));
  }

  void try_fuse(const Norm& norm, const Node& node) {
    std::string why;
    if (!is_float(norm.x) || !is_float(norm.result))
      why = "it is not float32";
    else if (!is_row(norm.gamma) || !is_row(norm.beta))
      why = "its weights are computed";
    else if (!is_contiguous(norm.result))
      why = "its result is not contiguous";
    else if (aliases_.is_written(norm.x) || aliases_.is_written(norm.result))
      why = "its input or result is written";
    if (!why.empty()) return context_.note("%{} is not fused: {}", norm.result->name(), why);
    std::vector<NamedArgument> inputs = {{"x", norm.x},
                                         {"residual", {}},
                                         {"gamma", optional_tensor(norm.gamma)},
                                         {"beta", optional_tensor(norm.beta)},
                                         {"kind", std::string(norm.kind)},
                                         {"eps", norm.eps},
                                         {"symmetric", false}};
    const TensorMeta meta = *norm.result->meta();
    std::vector<OutputSpec> more = {
        {norm.result->name() + "_sum", ValueType::kTensor, contiguous_meta(meta.dtype, meta.sizes)}};
    for (OutputSpec& spec : quantized_specs(norm.result->name(), meta, false))
      more.push_back(std::move(spec));
    replace_value(norm.result, norm.result->producer(), "halftone::norm", std::move(inputs), std::move(more),
                  node.source());
    ++fused_;
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
  size_t fused_ = 0;
};

}  // namespace

bool rewrite_fuse_norm(PassContext& context) {
  return NormFuser(context).run();
}

}  // namespace halftone::compiler
