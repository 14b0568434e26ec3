// patches_to_linear: a convolution whose patches do not overlap (the first layer of a vision transformer) and
// whose positions then become rows is a linear on the patches.
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

class PatchFinder {
 public:
  explicit PatchFinder(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    size_t found = 0;
    for (Node* node : snapshot(context_.graph)) found += try_convolution(*node) ? 1 : 0;
    if (found > 0) context_.note("{} of patches", counted(found, "convolution"));
    return found > 0;
  }

 private:
  struct Patches {
    int64_t channels, height, width;  ///< of a patch
    int64_t down, across;             ///< patches of an image
  };

  /// `otherwise`: what the operator takes if nothing is given.
  static bool is_pair(const Node& node, const char* name, const std::vector<int64_t>& wanted,
                      int64_t otherwise) {
    if (is_absent(node, name)) return wanted == std::vector<int64_t>{otherwise, otherwise};
    auto found = try_integers(node, name);
    if (found && found->size() == 1) found->push_back(found->front());
    return found == wanted;
  }

  std::optional<Patches> try_patches(const Node& node, const Value* x, const at::Tensor& weight) const {
    if (rank(x) != 4 || weight.dim() != 4 || !is_float(x) || weight.scalar_type() != at::kFloat)
      return std::nullopt;
    const std::vector<int64_t> patch = {weight.size(2), weight.size(3)};
    if (patch[0] < 1 || patch[1] < 1) return std::nullopt;
    const bool plain = is_pair(node, "stride", patch, 1) && is_pair(node, "padding", {0, 0}, 0) &&
                       is_pair(node, "dilation", {1, 1}, 1) && try_number(node, "groups") == 1.0;
    if (!plain || (node.is("aten::convolution") && try_flag(node, "transposed") != false))
      return std::nullopt;
    const auto channels = x->meta()->sizes[1].as_constant();
    const auto height = x->meta()->sizes[2].as_constant(), width = x->meta()->sizes[3].as_constant();
    if (!channels || !height || !width || *channels != weight.size(1)) return std::nullopt;
    // A convolution that would cut off pixels at the edge stays as it is.
    if (*height < patch[0] || *width < patch[1] || *height % patch[0] != 0 || *width % patch[1] != 0)
      return std::nullopt;
    return Patches{*channels, patch[0], patch[1], *height / patch[0], *width / patch[1]};
  }

  /// [b, n, h, w] → [b, n, h·w] → [b, h·w, n], without other readers.
  Node* try_rows(const Value* image) const {
    Node* flat = only_user(image);
    const bool flattens = flat != nullptr && (flat->is("aten::flatten.using_ints") ||
                                              flat->is("aten::view") || flat->is("aten::reshape"));
    if (!flattens || rank(flat->output()) != 3) return nullptr;
    const auto& before = image->meta()->sizes;
    const auto& after = flat->output()->meta()->sizes;
    if (!same(before[0], after[0]) || !same(before[1], after[1])) return nullptr;
    Node* turn = only_user(flat->output());
    if (turn == nullptr) return nullptr;
    if (turn->is("aten::permute"))
      return try_integers(*turn, "dims") == std::vector<int64_t>{0, 2, 1} ? turn : nullptr;
    if (!turn->is("aten::transpose.int")) return nullptr;
    const auto a = try_number(*turn, "dim0"), b = try_number(*turn, "dim1");
    if (!a || !b) return nullptr;
    const int64_t first = positive_dim(static_cast<int64_t>(*a), 3),
                  second = positive_dim(static_cast<int64_t>(*b), 3);
    return first + second == 3 && first * second == 2 ? turn : nullptr;
  }

  /// The rows of the convolution are a view with the channels far apart, those of the linear are dense: only
  /// for users whose results look the same for both.
  static bool strides_do_not_matter(const Value* rows) {
    const auto& users = rows->users();
    return std::all_of(users.begin(), users.end(), [](const Node* use) {
      return use->is("aten::cat") || use->is("aten::layer_norm") || use->is("aten::linear");
    });
  }

  Value* insert(Node* before, const char* target, std::vector<NamedArgument> inputs, const std::string& name,
                TensorMeta meta, const Source& source) {
    return context_.graph
        .insert(before, target, std::move(inputs), {{name, ValueType::kTensor, std::move(meta)}}, source)
        ->output();
  }

  /// [b, c, h·p, w·q] → [b, h·w, c·p·q].
  Value* cut(Value* x, const Patches& p, Node* before, const Source& source) {
    const c10::ScalarType dtype = x->meta()->dtype;
    const SymExpr batch = x->meta()->sizes[0];
    const std::string name = x->name();
    Value* apart =
        insert(before, "aten::reshape",
               {{"self", x},
                {"shape", Argument::List{int64_t{-1}, p.channels, p.down, p.height, p.across, p.width}}},
               name + "_cut",
               contiguous_meta(dtype, {batch, p.channels, p.down, p.height, p.across, p.width}), source);
    const TensorMeta straight = *apart->meta();
    TensorMeta turned = straight;
    const std::vector<int64_t> order = {0, 2, 4, 1, 3, 5};
    Argument::List dims;
    for (size_t i = 0; i < order.size(); ++i) {
      dims.emplace_back(order[i]);
      turned.sizes[i] = straight.sizes[static_cast<size_t>(order[i])];
      turned.strides[i] = straight.strides[static_cast<size_t>(order[i])];
    }
    Value* grouped = insert(before, "aten::permute", {{"self", apart}, {"dims", std::move(dims)}},
                            name + "_patches", std::move(turned), source);
    const int64_t width = p.channels * p.height * p.width;
    return insert(before, "aten::reshape",
                  {{"self", grouped}, {"shape", Argument::List{int64_t{-1}, p.down * p.across, width}}},
                  name + "_rows", contiguous_meta(dtype, {batch, p.down * p.across, width}), source);
  }

  bool try_convolution(Node& node) {
    if (!node.is("aten::conv2d") && !node.is("aten::convolution")) return false;
    Value *x = try_tensor(node, "input"), *weight_value = try_tensor(node, "weight");
    Value* bias = try_tensor(node, "bias");
    const at::Tensor weight = weight_value != nullptr ? constants_.tensor(weight_value) : at::Tensor();
    if (x == nullptr || !weight.defined() || aliases_.is_written(x) || aliases_.is_written(node.output()))
      return false;
    const auto patches = try_patches(node, x, weight);
    Node* rows = patches ? try_rows(node.output()) : nullptr;
    if (rows == nullptr || aliases_.is_written(rows->output())) return false;
    if (!strides_do_not_matter(rows->output())) {
      context_.note("%{} stays a convolution: who reads its rows keeps their strides", node.output()->name());
      return false;
    }
    Value* cut_rows = cut(x, *patches, rows, node.source());
    Value* matrix =
        constants_.add(weight_value->name() + "_rows", weight.reshape({weight.size(0), -1}).contiguous());
    const TensorMeta meta = contiguous_meta(at::kFloat, rows->output()->meta()->sizes);
    Node* linear = replace_value(rows->output(), rows, "aten::linear",
                                 {{"input", cut_rows}, {"weight", matrix}, {"bias", optional_tensor(bias)}},
                                 {}, node.source());
    linear->output()->set_meta(meta);
    return true;
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
};

}  // namespace

bool rewrite_patches_to_linear(PassContext& context) {
  return PatchFinder(context).run();
}

}  // namespace halftone::compiler
