#include "decoder/gguf_weights.h"

#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <set>

#include "base/errors.h"

namespace halftone {

namespace {

class WeightReader {
 public:
  WeightReader(const GgufReader& file, const DecoderConfig& config, const ProgressCallback& progress)
      : file_(file), config_(config), progress_(progress) {}

  DecoderWeights read() {
    const int64_t queries = config_.heads * config_.head_width, keys = config_.kv_heads * config_.head_width;
    DecoderWeights weights;
    // Names and shapes first: reading takes seconds.
    for (const bool only_look : {true, false}) {
      only_look_ = only_look;
      weights.layers.clear();
      weights.embedding = tensor("token_embd.weight", {config_.vocabulary, config_.width});
      weights.norm = tensor("output_norm.weight", {config_.width});
      if (file_.try_tensor("output.weight") != nullptr)
        weights.head = tensor("output.weight", {config_.vocabulary, config_.width});
      for (int64_t i = 0; i < config_.layers; ++i) {
        const auto of = [&](std::string_view part, std::vector<int64_t> shape) {
          return tensor(fmt::format("blk.{}.{}.weight", i, part), std::move(shape));
        };
        weights.layers.push_back({
            .attention_norm = of("attn_norm", {config_.width}),
            .query = in_halves(of("attn_q", {queries, config_.width}), config_.heads),
            .key = in_halves(of("attn_k", {keys, config_.width}), config_.kv_heads),
            .value = of("attn_v", {keys, config_.width}),
            .attention_output = of("attn_output", {config_.width, queries}),
            .feed_forward_norm = of("ffn_norm", {config_.width}),
            .gate = of("ffn_gate", {config_.hidden, config_.width}),
            .up = of("ffn_up", {config_.hidden, config_.width}),
            .down = of("ffn_down", {config_.width, config_.hidden}),
        });
        if (problems_.size() > kMaxProblems) break;
      }
      if (only_look) require_all();
    }
    return weights;
  }

 private:
  static constexpr size_t kMaxProblems = 20;

  at::Tensor tensor(const std::string& name, const std::vector<int64_t>& shape) {
    const GgufTensor* found = file_.try_tensor(name);
    if (only_look_) {
      if (found == nullptr) {
        problems_.push_back(name + " is missing");
      } else if (found->shape() != shape) {
        problems_.push_back(fmt::format("{} is [{}], not [{}]", name, fmt::join(found->shape(), ", "),
                                        fmt::join(shape, ", ")));
      }
      used_.insert(name);
      return {};
    }
    at::Tensor values = at::empty(shape, at::kFloat);
    file_.read_rows(*found, 0, {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
    if (progress_) progress_(++done_, static_cast<int64_t>(used_.size()), name);
    return values;
  }

  /// GGUF has the pairs that are rotated together next to each other: rows 0, 1, 2, 3, … of a head; the model wants the
  /// first of each pair in one half and the second in the other: 0, 2, …, 1, 3, ….
  at::Tensor in_halves(const at::Tensor& rows, int64_t heads) const {
    if (only_look_) return {};
    const int64_t pairs = config_.head_width / 2;
    return rows.view({heads, pairs, 2, config_.width}).transpose(1, 2).reshape(rows.sizes());
  }

  void require_all() {
    for (const GgufTensor& each : file_.tensors()) {
      if (!used_.contains(std::string(each.name)))
        problems_.push_back(fmt::format("{} is not known in this architecture", each.name));
    }
    if (problems_.empty()) return;
    const size_t more = problems_.size() > kMaxProblems ? problems_.size() - kMaxProblems : 0;
    problems_.resize(problems_.size() - more);
    fail(ErrorCode::kCorruptFile, "{}: the tensors do not fit a {} of {} layers: {}{}", config_.file,
         config_.architecture, config_.layers, fmt::join(problems_, "; "),
         more > 0 ? fmt::format("; and {} more", more) : "");
  }

  const GgufReader& file_;
  const DecoderConfig& config_;
  const ProgressCallback& progress_;
  bool only_look_ = true;
  std::set<std::string> used_;
  std::vector<std::string> problems_;
  int64_t done_ = 0;
};

}  // namespace

DecoderWeights read_decoder_weights(const GgufReader& file, const DecoderConfig& config,
                                    const ProgressCallback& progress) {
  return WeightReader(file, config, progress).read();
}

}  // namespace halftone
