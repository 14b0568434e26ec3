// Text from a decoder: a language model in a GGUF file or a folder of Hugging Face's form, made low-bit and compiled, with a KV cache.
//
//   const auto generator = halftone::Generator::open("model.gguf");
//   generator.generate("The house stood", {.max_tokens = 64, .on_text = [](std::string_view text) {
//     std::cout << text << std::flush;
//     return true;
//   }});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/base/error.h"
#include "halftone/base/progress.h"
#include "halftone/text/tokenizer.h"

namespace halftone {

struct DecoderOptions {
  /// Of the linears and of the embedding; any name that `halftone schemes` lists and that needs no data. "noquant":
  /// float32, as the file's numbers are when they are unpacked. "file": 4-bit weights as they are in the file, others in
  /// bfloat16; "file-int8act": the same with activations quantized to 8 bits.
  std::string scheme = "int8dq";
  /// Tokens that prompt and answer may have together: what the KV cache has room for. 0: as many as the model was
  /// trained for, at most 2048.
  int64_t context = 0;
  int threads = 0;  ///< of one sequence; 0: as many as torch has
  ProgressCallback progress;
};

/// Throws kInvalidArgument or kUnsupported, with the names that there are, unless DecoderOptions::scheme may be `name`.
HALFTONE_API void require_decoder_scheme(const std::string& name);

/// How a token is drawn. The steps are taken in this order, as in llama.cpp: repeat_penalty, top_k, top_p, min_p,
/// temperature.
struct SamplingOptions {
  double temperature = 0.8;  ///< 0: always the most probable token
  int64_t top_k = 40;        ///< only the k most probable tokens; 0: all
  double top_p = 0.95;       ///< only the most probable ones that together have this probability; 1: all
  double min_p = 0.05;       ///< only those with at least this share of the highest probability; 0: all
  double repeat_penalty =
      1;  ///< divides logits of tokens that are there already (multiplies negative ones); 1: none
  int64_t repeat_last = 64;  ///< how many of the last tokens that counts
  uint64_t seed = 0;         ///< the same seed gives the same text, whatever the number of threads
};

struct GenerateOptions {
  int64_t max_tokens = 128;
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< texts that end the answer; they are not part of it
  bool parse_special = true;  ///< special tokens in the prompt are themselves, as a chat template writes them
  bool logprobs = false;      ///< fills GeneratedText::logprobs
  /// Called with each piece of text as it comes; pieces never end within a character. False ends the answer.
  std::function<bool(std::string_view text)> on_text;
};

enum class StopReason {
  kEndOfText,    ///< the model ended its answer, or its turn
  kMaxTokens,    ///< max_tokens were made
  kStopText,     ///< one of `stop` came up
  kContextFull,  ///< there is no room for another token
  kCancelled,    ///< on_text said so
};
/// "end of text", "max tokens", …
HALFTONE_API std::string_view to_string(StopReason reason);

struct GeneratedText {
  std::string text;
  std::vector<int64_t> tokens;  ///< of the answer, the one that ended it included
  std::vector<float> logprobs;  ///< of each of them, natural logarithm, before sampling changed anything
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  ///< those of the prompt that a Conversation had in its KV cache already
  StopReason stop_reason = StopReason::kMaxTokens;
  double prompt_seconds = 0;  ///< until the first token could be drawn
  double answer_seconds = 0;  ///< from there to the end
};

/// What a file holds, in figures.
struct DecoderInfo {
  std::string architecture, name, scheme;
  int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, vocabulary = 0;
  int64_t trained_context = 0;  ///< tokens
  int64_t context = 0;          ///< tokens that there is room for here
  int64_t parameters = 0;
  int64_t weight_bytes = 0;  ///< as loaded
  int64_t cache_bytes = 0;   ///< of the KV cache of one sequence
};

/// A model that is ready to generate. Thread-safe: each call has a sequence and a KV cache of its own, and gives what it
/// would give alone.
class HALFTONE_API Generator {
 public:
  /// A GGUF file, or a folder with config.json, tokenizer.json and safetensors files. docs/generate.md says which
  /// architectures run. Throws halftone::Error: kNotFound for a file that is missing, kCorruptFile for a damaged file, kUnsupported for an architecture, tokenizer or tensor type
  /// that this version does not run, with its name.
  static Generator open(const std::string& path, const DecoderOptions& options = {});

  /// kInvalidArgument if the prompt has no tokens or leaves no room in the context.
  GeneratedText generate(std::string_view prompt, const GenerateOptions& options = {}) const;

  /// The logits after each of these tokens, those before place `first` left out: rows of DecoderInfo::vocabulary numbers,
  /// for measuring a model.
  std::vector<std::vector<float>> logits(std::span<const int64_t> tokens, int64_t first = 0) const;

  const Tokenizer& tokenizer() const;
  const DecoderInfo& info() const;
  /// The template that the file has for chats, as it is; empty if there is none.
  const std::string& chat_template() const;

 private:
  friend class Conversation;
  struct State;
  explicit Generator(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace halftone
