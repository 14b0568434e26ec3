// Weights from a GGUF file.
#include <ATen/ops/empty.h>

#include "base/checked.h"
#include "base/errors.h"
#include "decoder/source/weight_source.h"

namespace halftone {

namespace {

class GgufWeights final : public WeightSource {
 public:
  explicit GgufWeights(GgufReader file) : file_(std::move(file)) {}

  std::string name_of(std::string_view part, std::string_view kind, int64_t layer) const override {
    if (part == "ffn_gate_up") part = "ffn_up";  // its width tells them apart
    return layer < 0 ? fmt::format("{}.{}", part, kind) : fmt::format("blk.{}.{}.{}", layer, part, kind);
  }

  std::optional<std::vector<int64_t>> try_shape(const std::string& name) const override {
    const GgufTensor* tensor = file_.try_tensor(name);
    return tensor == nullptr ? std::nullopt : std::optional(tensor->shape());
  }

  at::Tensor read(const std::string& name) const override {
    const GgufTensor* tensor = required(file_.try_tensor(name), name);
    at::Tensor values = at::empty(tensor->shape(), at::kFloat);
    file_.read_rows(*tensor, 0, {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
    return values;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (tensor.name != "rope_freqs.weight") names.emplace_back(tensor.name);  // read with the config
    }
    return names;
  }

  std::optional<int64_t> values() const override {
    std::optional<int64_t> sum = 0;
    for (const GgufTensor& tensor : file_.tensors()) sum = sum ? checked_add(*sum, tensor.values) : sum;
    return sum;
  }

 private:
  GgufReader file_;
};

}  // namespace

std::unique_ptr<WeightSource> gguf_weights(GgufReader file) {
  return std::make_unique<GgufWeights>(std::move(file));
}

}  // namespace halftone
