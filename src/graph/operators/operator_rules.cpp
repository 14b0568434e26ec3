#include "graph/operators/operator_rules.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace halftone {
namespace {

/// A rule and the names, without overload, that fall under it. A '*' at either end stands for any text.
struct NameRule {
  OperatorRule rule;
  std::vector<std::string_view> patterns;
};

bool matches(std::string_view name, std::string_view pattern) {
  const bool open_front = pattern.starts_with('*');
  const bool open_back = pattern.size() > 1 && pattern.ends_with('*');
  if (open_front) pattern.remove_prefix(1);
  if (open_back) pattern.remove_suffix(1);
  if (open_front && open_back) return name.find(pattern) != std::string_view::npos;
  if (open_front) return name.ends_with(pattern);
  return open_back ? name.starts_with(pattern) : name == pattern;
}

/// The internal operators of ATen that exporters write. Those with a sample to start from were tried with
/// wrong sizes, indices and dtypes and answer with an error; the others were read. All other names that begin
/// with an underscore are refused.
constexpr std::string_view kReviewedInternals[] = {
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
    "aten::_addmm_activation",
    "aten::_assert_async",
    "aten::_assert_scalar",
    "aten::_assert_tensor_metadata",
    "aten::_batch_norm_impl_index",
    "aten::_batch_norm_no_update",
    "aten::_batch_norm_with_update",
    "aten::_batch_norm_with_update_functional",
    "aten::_cdist_forward",
    "aten::_conj",
    "aten::_conj_copy",
    "aten::_conj_physical",
    "aten::_convolution",
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    "aten::_euclidean_dist",
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "aten::_fft_c2c",
    "aten::_fft_c2r",
    "aten::_fft_r2c",
    "aten::_functional_assert_async",
    "aten::_functional_assert_scalar",
    "aten::_functional_sym_constrain_range",
    "aten::_functional_sym_constrain_range_for_size",
    "aten::_fused_rms_norm",
    "aten::_grouped_mm",
    "aten::_int_mm",
    "aten::_is_all_true",
    "aten::_is_any_true",
    "aten::_linalg_check_errors",
    "aten::_linalg_det",
    "aten::_linalg_eigh",
    "aten::_linalg_slogdet",
    "aten::_linalg_solve_ex",
    "aten::_linalg_svd",
    "aten::_local_scalar_dense",
    "aten::_log_softmax",
    "aten::_logcumsumexp",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_functional",
    "aten::_native_batch_norm_legit_no_training",
    "aten::_neg_view",
    "aten::_neg_view_copy",
    "aten::_pack_padded_sequence",
    "aten::_pad_packed_sequence",
    "aten::_pdist_forward",
    "aten::_prelu_kernel",
    "aten::_reshape_copy",
    "aten::_safe_softmax",
    "aten::_scaled_dot_product_attention_math",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_shape_as_tensor",
    "aten::_softmax",
    "aten::_to_copy",
    "aten::_trilinear",
    "aten::_unique",
    "aten::_unique2",
    "aten::_unsafe_index",
    "aten::_unsafe_index_put",
    "aten::_unsafe_view",
    "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_lanczos2d_aa",
    "aten::_upsample_nearest_exact1d",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_nearest_exact3d",
    "aten::_weight_norm",
    "aten::_weight_norm_interface",
};

const std::vector<NameRule>& name_rules() {
  static const std::vector<NameRule> rules = {
      {{"halftone", true, "is one of Halftone's own"}, {"halftone::*"}},
      {{"files", false, "reads and writes files"}, {"aten::from_file"}},
      {{"prints", false, "writes to the terminal"}, {"aten::_print", "aten::_debug_*"}},
      {{"storage", false, "changes or reinterprets the memory under a tensor"},
       {"inductor::*", "aten::set", "aten::set_", "aten::set_data", "aten::resize", "aten::resize_",
        "aten::resize_as", "aten::resize_as_", "aten::_resize_output", "aten::_resize_output_",
        "aten::_reshape_alias", "aten::_reshape_alias_copy", "aten::as_strided_", "aten::_copy_from",
        "aten::_copy_from_and_resize", "aten::_lazy_clone", "aten::_has_same_storage_numel",
        "aten::_has_compatible_shallow_copy_type", "aten::is_set_to"}},
      {{"autograd", false, "reads or changes what autograd and functorch keep with a tensor"},
       {"aten::requires_grad_", "aten::retain_grad", "aten::retains_grad", "aten::backward",
        "aten::_backward", "aten::is_leaf", "aten::is_inference", "aten::output_nr", "aten::_version",
        "aten::data", "aten::get_gradients", "aten::_fw_primal*", "aten::_make_dual*", "aten::_unpack_dual",
        "aten::_add_batch_dim", "aten::_remove_batch_dim", "aten::_autocast_to*"}},
      {{"sparse and nested", false, "is for sparse, nested and MKL-DNN tensors, which Halftone does not run"},
       {"*sparse*",           "*_csr*",
        "*nested*",           "*jagged*",
        "*coalesce*",         "aten::indices*",
        "aten::values*",      "aten::_indices*",
        "aten::_values*",     "*_indices_copy",
        "aten::crow_indices", "aten::ccol_indices",
        "aten::col_indices",  "aten::row_indices",
        "aten::_nnz",         "aten::_dimI",
        "aten::_dimV",        "aten::dense_dim",
        "aten::hspmm",        "aten::smm",
        "aten::sspaddmm",     "aten::to_dense",
        "aten::_to_dense",    "aten::to_padded_tensor",
        "aten::to_mkldnn",    "aten::_spdiags",
        "aten::_spsolve"}},
      {{"quantized types", false, "is for torch's quantized and packed tensors, which Halftone does not run"},
       {"aten::quantize*", "aten::q_*", "aten::qscheme", "aten::int_repr", "aten::dequantize", "*_quantized*",
        "aten::choose_qparams_optimized", "aten::_choose_qparams*", "aten::_wrapped_*", "aten::_dyn_quant*",
        "*int4pack*", "*int8pack*", "aten::fbgemm*"}},
      {{"other devices", false, "is for one device or library and not for graphs that run anywhere"},
       {"*cudnn*",
        "*miopen*",
        "*mkldnn*",
        "*_mps*",
        "*cufft*",
        "*nnpack*",
        "*triton*",
        "*cslt*",
        "*cuda*",
        "*vulkan*",
        "*xla*",
        "aten::pin_memory",
        "aten::_pin_memory",
        "aten::is_pinned",
        "aten::record_stream",
        "aten::is_distributed",
        "aten::get_device",
        "aten::convolution_overrideable",
        "aten::batch_norm_elemt",
        "aten::batch_norm_gather_stats*",
        "aten::batch_norm_stats"}},
      {{"optimizers", false, "belongs to optimizers and training loops"},
       {"aten::_foreach_*", "aten::_fused_ada*", "aten::_fused_sgd*", "aten::_amp_*", "aten::_fused_moving*",
        "aten::fused_moving*"}},
      {{"backward", false, "computes gradients: exported models do not, and its sizes are not checked"},
       {"*backward*", "*_jvp", "aten::*_grad"}},
      {{"unchecked", false, "is known to end the process when its operands are wrong"},
       {"aten::_index_put_impl*", "aten::_unsafe_masked_index*", "aten::slice_inverse", "aten::ctc_loss",
        "aten::_ctc_loss", "aten::lcm", "aten::lcm_", "aten::linalg_ldl_solve", "aten::linalg_lstsq",
        "aten::lu_unpack", "aten::segment_reduce"}},
      {{"unbounded", false, "takes as many steps as the values in its operands say"}, {"*_polynomial_*"}},
  };
  return rules;
}

constexpr OperatorRule kNamespace = {
    "namespace", false,
    "is neither ATen's nor Halftone's, nor of a library that the caller loaded or allowed"};
constexpr OperatorRule kInternal = {"internal", false, "is internal to ATen and was not reviewed"};
constexpr OperatorRule kOut = {"out", false, "writes its result into a tensor that it is given"};
constexpr OperatorRule kMutates = {"mutates", false, "writes to operands and does not say so in its name"};
constexpr OperatorRule kObjects = {"objects", false, "takes or gives objects that files do not hold"};
constexpr OperatorRule kComputes = {"computes", true, "computes tensors and numbers of its operands"};

bool is_plain(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::DeviceObjType:
      return true;
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType:
      return std::ranges::all_of(type->containedTypes(), is_plain);
    default:
      return false;
  }
}

bool is_optional_generator(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::OptionalType &&
         type->containedType(0)->kind() == c10::TypeKind::GeneratorType;
}

/// Numbers are drawn from torch's own generator: the operand is there, but nothing in a file can fill it.
bool holds_objects(const c10::FunctionSchema& schema) {
  if (schema.is_vararg() || schema.is_varret()) return true;
  return std::ranges::any_of(schema.arguments(),
                             [](const c10::Argument& argument) {
                               return !is_plain(argument.type()) && !is_optional_generator(argument.type());
                             }) ||
         std::ranges::any_of(schema.returns(),
                             [](const c10::Argument& result) { return !is_plain(result.type()); }) ||
         schema.overload_name().find("generator") != std::string::npos;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool has_out(const c10::FunctionSchema& schema) {
  const std::string& overload = schema.overload_name();
  return overload == "out" || overload.ends_with("_out") ||
         std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
           return argument.kwarg_only() && writes(argument);
         });
}

/// In-place operators write to their first operand and end in an underscore; batch norms update statistics.
bool mutates_in_hiding(const c10::FunctionSchema& schema, std::string_view name) {
  if (name == "aten::_native_batch_norm_legit" || name == "aten::_batch_norm_with_update") return false;
  const bool in_place = name.ends_with('_') || name.starts_with("aten::__i");
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    if (writes(schema.arguments()[i]) && !(in_place && i == 0)) return true;
  }
  return false;
}

}  // namespace

std::span<const OperatorRule> operator_rules() {
  static const std::vector<OperatorRule> all = [] {
    std::vector<OperatorRule> rules;
    rules.push_back(kNamespace);
    for (const NameRule& rule : name_rules()) rules.push_back(rule.rule);
    for (const OperatorRule& rule : {kOut, kObjects, kInternal, kMutates, kComputes}) rules.push_back(rule);
    return rules;
  }();
  return all;
}

const OperatorRule& rule_of(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const bool known =
      name.starts_with("aten::") || name.starts_with("halftone::") || name.starts_with("inductor::");
  if (!known) return kNamespace;
  for (const NameRule& rule : name_rules()) {
    for (const std::string_view pattern : rule.patterns) {
      if (matches(name, pattern)) return rule.rule;
    }
  }
  if (has_out(schema)) return kOut;
  if (holds_objects(schema)) return kObjects;
  const bool internal = name.starts_with("aten::_") && !name.starts_with("aten::__");
  if (internal && std::ranges::find(kReviewedInternals, name) == std::end(kReviewedInternals))
    return kInternal;
  return mutates_in_hiding(schema, name) ? kMutates : kComputes;
}

}  // namespace halftone
