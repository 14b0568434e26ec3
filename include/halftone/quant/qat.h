// Quantization-aware training (QAT): a C++ module is trained while its weights, and for dynamic schemes its
// activations too, are rounded as the scheme will round them; then it is quantized with what it has learned.
// As torchao's QATConfig. docs/qat.md.
//
//   prepare_qat(*net, "int4wo");        // in place; the forward code and the parameters stay as they are
//   train(*net);                        // any loop, any optimizer
//   convert_qat(*net);                  // the module that quantize_(*net, "int4wo") would give
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>

#include <cstdint>
#include <optional>
#include <string>

#include "halftone/base/api.h"
#include "halftone/quant/config.h"
#include "halftone/quant/quantize.h"

namespace torch::nn {
class Module;
}

namespace halftone {

struct FakeQuantizeOptions {
  int64_t quant_min = -8;  ///< the least and the largest integer, in [-128, 255]
  int64_t quant_max = 7;
  int64_t group_size = 0;     ///< neighbouring inputs with one scale; 0: all of an output
  double scale_gradient = 1;  ///< a factor for the gradient of the scale (LSQ: 1 / sqrt(count · quant_max))
};

/// Quantized and restored at once, in x's type:
///   q = clamp(rint(x · (1/scale)) + zero_point, [quant_min, quant_max]),  y = (q - zero_point) · scale
/// x: floating point, [n, …], whose rows are flattened. scale: one number for all of x, [n], or
/// [n, groups]; the last group may be shorter. zero_point: as scale, of integers; nothing: zeros.
/// Gradients: x gets that of y where the integer is not clamped, else 0 (straight through). scale gets
/// q - zero_point - x/scale there, else q - zero_point, summed over its numbers (learned step size, LSQ).
/// There is no second derivative. kInvalidArgument where sizes do not fit.
HALFTONE_API at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale,
                                      const std::optional<at::Tensor>& zero_point,
                                      const FakeQuantizeOptions& options = {});

/// The same for activations: each row of x, or each group of `group_size` in it, to 8 bits with the range
/// that it has in this call; as int8dq (symmetric or not) and int4wo-int8act (symmetric, groups of 32) do.
/// The gradient goes straight through.
HALFTONE_API at::Tensor fake_quantize_rows(const at::Tensor& x, bool symmetric = false,
                                           int64_t group_size = 0);

/// Where the scales of weights come from while a module is trained.
enum class QatScales {
  kRange,          ///< the weight's range in each call, as quantize_() takes it: torchao's way
  kMovingAverage,  ///< the moving average of that range over training calls: torch.ao's way
  kLearned,        ///< a parameter each, trained with the weights (LSQ). Symmetric schemes only
};

struct QatOptions {
  QuantizeOptions layers;  ///< which layers, and overrides, as for quantize_()
  QatScales scales = QatScales::kRange;
  double averaging_constant = 0.01;  ///< of kMovingAverage: the share of the newest range
  /// After so many training calls a layer's ranges stay as they are; nothing: never. Not for kLearned.
  std::optional<int64_t> freeze_after;
};

/// In place, on the layers that quantize_(module, config, options.layers) would quantize: forward code,
/// parameters and optimizers that hold them stay as they are, in their own types. Where such a weight is used
/// by linear, addmm, mm, matmul (x · Wᵀ) or embedding, also through transposed views and rows of it, the
/// operator gets the weight fake-quantized, and activations too where the scheme is dynamic; gradients reach
/// the weight itself. All other operators, optimizers among them, see the weight as it is.
///
/// Each layer gets a submodule "weight_fake_quant" (for MultiheadAttention: "in_proj_weight_fake_quant", …)
/// with buffers min_val, max_val, steps and freeze_at, and for kLearned a parameter scale: torch::save,
/// halftone::save_module and optimizers find them there. Initialized from the weights, so these should be
/// loaded before. To resume, prepare a module of the same kind in the same way and load into it.
///
/// Refused, before anything is changed: kUnsupported for schemes without integers (float8, bf16, configs of
/// your own) and for Int4Rounding::kSearch; kInvalidArgument for options that make no sense, and as
/// quantize_(). A prepared module refuses Module::to(dtype) (kUnsupported), and torch refuses its clone().
/// Returns what quantize_() would report.
HALFTONE_API QuantizeReport prepare_qat(torch::nn::Module& module, const QuantConfig& config,
                                        const QatOptions& options = {});

/// From now on the scales of all prepared layers stay as they are in the last training call. Learned scales
/// no longer require a gradient. Nothing prepared: kInvalidArgument.
HALFTONE_API void freeze_observers(torch::nn::Module& module);

/// In place: the weights become the quantized tensors that quantize_() makes, with the scales of training,
/// and the submodules are gone. With QatScales::kRange that never froze, the result is quantize_()'s own, bit
/// for bit. Optimizers must be dropped: the float weights no longer exist. Nothing prepared:
/// kInvalidArgument. On an error the module is as it was.
HALFTONE_API QuantizeReport convert_qat(torch::nn::Module& module);

/// Takes prepare_qat() back and keeps the float weights as they are now.
HALFTONE_API void remove_qat(torch::nn::Module& module);

/// Whether a tensor is a weight that prepare_qat() prepared, or a view of one.
HALFTONE_API bool is_fake_quantized(const at::Tensor& tensor);

/// The dispatch key of such weights. torch registers nothing for it.
inline constexpr c10::DispatchKey kFakeQuantizedKey = c10::DispatchKey::DeferredInit;

}  // namespace halftone
