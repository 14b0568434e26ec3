// The data of a quantized tensor, and how the kernels in this folder reach it.
#pragma once

#include <c10/core/TensorImpl.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/quant/quantized_tensor.h"

namespace halftone {

/// A layer's weight, shared by all tensors that stand for it. Immutable but for the cache of its rows.
/// Thread-safe.
class LayerWeight {
 public:
  LayerWeight(QuantizedWeight weight, std::string layer)
      : weight_(std::move(weight)), layer_(std::move(layer)) {}

  const QuantizedWeight& weight() const { return weight_; }
  const std::string& layer() const { return layer_; }
  int64_t n() const { return weight_.sizes[0]; }
  int64_t k() const { return weight_.sizes[1]; }

  /// Rows [start, stop). A module cuts the same rows in every call (MultiheadAttention's queries, keys and
  /// values), and what a kernel packs is found by the parts' identity: so the first few are kept.
  std::shared_ptr<const LayerWeight> rows(int64_t start, int64_t stop) const;

 private:
  struct Rows {
    int64_t start, stop;
    std::shared_ptr<const LayerWeight> weight;
  };
  QuantizedWeight weight_;
  std::string layer_;
  mutable std::mutex mutex_;
  mutable std::vector<Rows> rows_;
};

/// Held by the TensorImpl in its slot for backends. torch copies that slot wherever it copies a tensor's
/// metadata (detach, set_data, Module::clone), where the fields of a TensorImpl subclass would be cut off.
struct QuantizedMeta final : c10::BackendMeta {
  QuantizedMeta(std::shared_ptr<const LayerWeight> source, bool transposed)
      : source(std::move(source)), transposed(transposed) {}
  std::shared_ptr<const LayerWeight> source;
  bool transposed;  ///< the tensor is [k, n]
};

/// nullptr for plain and undefined tensors.
const QuantizedMeta* try_meta(const at::Tensor& tensor);

/// kInvalidArgument for plain and undefined tensors.
const QuantizedMeta& meta_of(const at::Tensor& tensor);

/// For kernels that compute: refuses a weight that requires a gradient, which it would never get.
const QuantizedMeta& meta_for_use(const at::Tensor& tensor, std::string_view op);

at::Tensor make_quantized_tensor(std::shared_ptr<const LayerWeight> source, bool transposed);

/// kUnsupported: "fc1 is quantized (Int8WeightOnlyConfig): aten::add.Tensor has no kernel for it; …".
[[noreturn]] void fail_unsupported(const QuantizedMeta& meta, std::string_view op,
                                   std::string_view reason = {});

/// Makes sure that the linker keeps the kernels where a tensor can be made.
void link_kernels();

}  // namespace halftone
