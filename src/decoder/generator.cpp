// Generator: from a file to a compiled model, and from a prompt to text.
#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "decoder/compiled_decoder.h"
#include "decoder/decoder_scheme.h"
#include "decoder/decoder_source.h"
#include "decoder/memory_needed.h"
#include "decoder/sampler.h"
#include "decoder/sequence.h"
#include "decoder/stop_text.h"
#include "halftone/compile/compile.h"
#include "halftone/decoder/generate.h"

namespace halftone {

namespace {

constexpr int64_t kDefaultContext = 2048;

class Clock {
 public:
  /// Seconds since the last call, or since this was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

int64_t context_of(const DecoderConfig& config, int64_t wanted) {
  if (wanted == 0) return std::min(config.trained_context, kDefaultContext);
  if (wanted < 2 || wanted > config.trained_context) {
    fail(ErrorCode::kInvalidArgument, "{}: a context of {} tokens; the model was trained for 2 to {}",
         config.file, wanted, config.trained_context);
  }
  return wanted;
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

struct Generator::State {
  DecoderConfig config;
  DecoderInfo info;
  Tokenizer tokenizer;
  CompiledDecoder decoder;
};

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
  auto state = std::make_shared<State>(State{config, {}, source.tokenizer, {}});
  if (state->tokenizer.id_bound() > config.vocabulary) {
    fail(ErrorCode::kCorruptFile, "{}: the tokenizer has ids up to {}, the model {} tokens", path,
         state->tokenizer.id_bound() - 1, config.vocabulary);
  }
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
  if (options.max_tokens < 0)
    fail(ErrorCode::kInvalidArgument, "max_tokens is {}, it must be 0 or more", options.max_tokens);
  Sampler sampler(options.sampling);
  StopText stop(options.stop);
  StreamDecoder decoder(state_->tokenizer);
  std::vector<int64_t> tokens = state_->tokenizer.encode(prompt, {.parse_special = options.parse_special});
  if (tokens.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  Sequence sequence(state_->decoder);
  GeneratedText result;
  result.prompt_tokens = static_cast<int64_t>(tokens.size());
  Clock clock;
  at::Tensor logits = sequence.feed(tokens);
  result.prompt_seconds = clock.lap();
  const auto show = [&](const std::string& text) {
    result.text += text;
    return text.empty() || !options.on_text || options.on_text(text);
  };
  result.stop_reason = StopReason::kMaxTokens;
  while (static_cast<int64_t>(result.tokens.size()) < options.max_tokens) {
    const std::span<const float> row(logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel()));
    const int64_t token = sampler.draw(row, tokens);
    result.tokens.push_back(token);
    tokens.push_back(token);
    if (options.logprobs) result.logprobs.push_back(log_probability(row, token));
    if (state_->tokenizer.eos_id() == token || state_->config.ends(token)) {
      result.stop_reason = StopReason::kEndOfText;
      break;
    }
    const bool go_on = show(stop.push(decoder.push(token)));
    if (stop.found() || !go_on) {
      result.stop_reason = go_on ? StopReason::kStopText : StopReason::kCancelled;
      break;
    }
    if (static_cast<int64_t>(result.tokens.size()) == options.max_tokens) break;
    if (sequence.room() == 0) {
      result.stop_reason = StopReason::kContextFull;
      break;
    }
    logits = sequence.feed({&token, 1});
  }
  if (!stop.found()) {
    std::string rest = stop.push(decoder.finish());
    if (!stop.found()) rest += stop.finish();
    show(rest);
  }
  result.answer_seconds = clock.lap();
  return result;
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
