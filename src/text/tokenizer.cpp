#include "halftone/text/tokenizer.h"

#include "base/errors.h"
#include "halftone/cli/text_file.h"
#include "text/tokenizer_pipeline.h"

namespace halftone {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;

void check_token(const TokenizerPipeline& pipeline, int64_t id) {
  if (!pipeline.tokens().has(id))
    fail(ErrorCode::kInvalidArgument, "{}: {} is no token", pipeline.spec().name, id);
}

}  // namespace

Tokenizer::Tokenizer(TokenizerSpec spec)
    : pipeline_(std::make_shared<const TokenizerPipeline>(std::move(spec))) {}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& name) {
  return Tokenizer(parse_tokenizer_json(text, name));
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  return from_json(read_text_file(path, kLargestFile), path);
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return pipeline_->encode(text, options);
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  DecoderChain chain(pipeline_->spec().decoders);
  std::string text;
  for (const int64_t id : ids) pipeline_->decode_to(chain, id, skip_special, text);
  chain.finish(text);
  return text;
}

std::string Tokenizer::token_bytes(int64_t id) const {
  check_token(*pipeline_, id);
  return pipeline_->token_bytes(id);
}

std::string Tokenizer::token(int64_t id) const {
  check_token(*pipeline_, id);
  return pipeline_->tokens().text(id);
}

std::optional<int64_t> Tokenizer::id_of(std::string_view token) const {
  const uint32_t id = pipeline_->tokens().find(token);
  return id == StringMap::kNone ? std::nullopt : std::optional<int64_t>(id);
}

bool Tokenizer::is_token(int64_t id) const {
  return pipeline_->tokens().has(id);
}

bool Tokenizer::is_special(int64_t id) const {
  return pipeline_->is_special(id);
}

int64_t Tokenizer::vocabulary_size() const {
  return pipeline_->tokens().count();
}

int64_t Tokenizer::id_bound() const {
  return pipeline_->tokens().bound();
}

std::optional<int64_t> Tokenizer::bos_id() const {
  return pipeline_->spec().bos_id;
}

std::optional<int64_t> Tokenizer::eos_id() const {
  return pipeline_->spec().eos_id;
}

std::optional<int64_t> Tokenizer::pad_id() const {
  return pipeline_->spec().pad_id;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : pipeline_(tokenizer.pipeline_),
      chain_(std::make_unique<DecoderChain>(pipeline_->spec().decoders)),
      skip_special_(skip_special) {}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(int64_t id) {
  std::string text;
  pipeline_->decode_to(*chain_, id, skip_special_, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  chain_->finish(text);
  return text;
}

}  // namespace halftone
