// Generator: from a file to a compiled model, and from a prompt to text.
#include <algorithm>

#include "base/errors.h"
#include "decoder/answer.h"
#include "decoder/decoder_scheme.h"
#include "decoder/generator_state.h"
#include "decoder/source/decoder_source.h"
#include "decoder/source/memory_needed.h"
#include "halftone/compile/compile.h"

namespace halftone {

namespace {

constexpr int64_t kDefaultContext = 2048;

int64_t context_of(const DecoderConfig& config, int64_t wanted) {
  if (wanted == 0) return std::min(config.trained_context, kDefaultContext);
  if (wanted < 2 || wanted > config.trained_context) {
    fail(ErrorCode::kInvalidArgument, "{}: a context of {} tokens; the model was trained for 2 to {}",
         config.file, wanted, config.trained_context);
  }
  return wanted;
}

/// The tokens that end an answer: the tokenizer's own, and those that the model's files name.
std::vector<int64_t> end_ids_of(const DecoderConfig& config, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids = config.end_ids;
  if (tokenizer.eos_id()) ids.push_back(*tokenizer.eos_id());
  return ids;
}

int64_t bytes_of(const GraphModule& module) {
  int64_t bytes = 0;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind == InputKind::kParameter)
      bytes += static_cast<int64_t>(module.tensor(input.target).nbytes());
  }
  return bytes;
}

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
      return "end of text";
    case StopReason::kMaxTokens:
      return "max tokens";
    case StopReason::kStopText:
      return "stop text";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Generator::Generator(std::shared_ptr<const State> state) : state_(std::move(state)) {}
const Tokenizer& Generator::tokenizer() const {
  return state_->tokenizer;
}
const DecoderInfo& Generator::info() const {
  return state_->info;
}
const std::string& Generator::chat_template() const {
  return state_->config.chat_template;
}

Generator Generator::open(const std::string& path, const DecoderOptions& options) {
  const DecoderSource source = open_decoder_source(path);
  const DecoderConfig& config = source.config;
  const int64_t context = context_of(config, options.context);
  const DecoderScheme scheme(options.scheme);
  require_memory_for(*source.weights, config, context);
  auto state = std::make_shared<State>(State{config, {}, source.tokenizer, {}, {}});
  if (state->tokenizer.id_bound() > config.vocabulary) {
    fail(ErrorCode::kCorruptFile, "{}: the tokenizer has ids up to {}, the model {} tokens", path,
         state->tokenizer.id_bound() - 1, config.vocabulary);
  }
  state->end_ids = end_ids_of(config, state->tokenizer);
  const auto module =
      capture_decoder(config, read_decoder_weights(*source.weights, config, options.progress), context);
  DecoderInfo& info = state->info;
  for (const GraphInput& input : module->graph().inputs()) {
    if (input.kind == InputKind::kParameter) info.parameters += module->tensor(input.target).numel();
  }
  scheme.apply(*module);
  info.architecture = config.architecture;
  info.name = config.name;
  info.scheme = options.scheme;
  info.layers = config.layers;
  info.width = config.width;
  info.heads = config.heads;
  info.kv_heads = config.kv_heads;
  info.vocabulary = config.vocabulary;
  info.trained_context = config.trained_context;
  info.context = context;
  info.weight_bytes = bytes_of(*module);
  info.cache_bytes = config.cache_values(context) * static_cast<int64_t>(sizeof(float));
  state->decoder = {module, compile(module, {.threads = options.threads}), context,
                    config.has_window_within(context) ? config.window : 0};
  return Generator(std::move(state));
}

GeneratedText Generator::generate(std::string_view prompt, const GenerateOptions& options) const {
  Answer answer(state_->tokenizer, state_->end_ids, options);
  const std::vector<int64_t> tokens =
      state_->tokenizer.encode(prompt, {.parse_special = options.parse_special});
  if (tokens.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  Sequence sequence(state_->decoder);
  return answer.draw(sequence, tokens);
}

std::vector<std::vector<float>> Generator::logits(std::span<const int64_t> tokens, int64_t first) const {
  const auto count = static_cast<int64_t>(tokens.size());
  if (first < 0 || first > count)
    fail(ErrorCode::kInvalidArgument, "logits from place {} of {} tokens", first, count);
  std::vector<std::vector<float>> rows;
  Sequence sequence(state_->decoder);
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor logits = sequence.feed(tokens.subspan(static_cast<size_t>(i), 1));
    if (i < first) continue;
    const float* values = logits.const_data_ptr<float>();
    rows.emplace_back(values, values + logits.numel());
  }
  return rows;
}

}  // namespace halftone
