#include "halftone/decoder/conversation.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "base/errors.h"
#include "decoder/answer.h"
#include "decoder/generator_state.h"

namespace halftone {

namespace {

std::string token_text(const Tokenizer& tokenizer, std::optional<int64_t> id) {
  return id ? tokenizer.token(*id) : "";
}

/// Takes the oldest turn of the user out, with the answer to it; false if there is only one turn.
bool drop_oldest_turn(std::vector<ChatMessage>& messages) {
  const auto is_user = [](const ChatMessage& message) { return message.role == "user"; };
  const auto first = std::find_if(messages.begin(), messages.end(), is_user);
  if (first == messages.end()) return false;
  const auto second = std::find_if(first + 1, messages.end(), is_user);
  if (second == messages.end()) return false;
  messages.erase(first, second);
  return true;
}

}  // namespace

struct Conversation::State {
  State(std::shared_ptr<const Generator::State> model, ConversationOptions wanted)
      : generator(std::move(model)),
        options(std::move(wanted)),
        chat(parse_template()),
        sequence(generator->decoder) {
    const Tokenizer& tokenizer = generator->tokenizer;
    rendering = {.bos_token = token_text(tokenizer, tokenizer.bos_id()),
                 .eos_token = token_text(tokenizer, tokenizer.eos_id()),
                 .variables = options.variables};
    clear();
    end_ids = generator->end_ids;
    if (const auto id = end_of_turn()) end_ids.push_back(*id);
  }

  ChatTemplate parse_template() const {
    const DecoderConfig& config = generator->config;
    if (!options.chat_template.empty()) return ChatTemplate::parse(options.chat_template);
    if (config.chat_template.empty()) {
      fail(ErrorCode::kInvalidArgument,
           "{}: the file has no chat template (tokenizer.chat_template): it is no model for chats, or its "
           "template must be given",
           config.file);
    }
    return ChatTemplate::parse(config.chat_template, config.file + ": chat template");
  }

  void clear() {
    messages.clear();
    if (!options.system.empty()) messages.push_back({"system", options.system});
    rendering.now =
        std::time(nullptr);  // of the whole conversation, so that what is rendered stays as it was
  }

  std::vector<int64_t> tokens_of(const std::vector<ChatMessage>& turns) const {
    return generator->tokenizer.encode(chat.render(turns, rendering),
                                       {.add_special = false, .parse_special = true});
  }

  /// The special token that the template puts behind an answer. A model that ends its turns with it need not name it as the end of
  /// a text, and its file need not say so.
  std::optional<int64_t> end_of_turn() const {
    constexpr std::string_view kAnswer = "answer-of-the-model";
    ChatTemplateOptions closed = rendering;
    closed.add_generation_prompt = false;
    std::string text;
    try {
      text = chat.render({{"user", "question"}, {"assistant", std::string(kAnswer)}}, closed);
    } catch (const Error&) {
      return std::nullopt;  // a template that wants more than this says so when a conversation is rendered
    }
    const size_t found = text.rfind(kAnswer);
    if (found == std::string::npos) return std::nullopt;
    const size_t behind = text.find_first_not_of(" \n\t", found + kAnswer.size());
    if (behind == std::string::npos) return std::nullopt;
    const Tokenizer& tokenizer = generator->tokenizer;
    const auto ids = tokenizer.encode(std::string_view(text).substr(behind),
                                      {.add_special = false, .parse_special = true});
    return !ids.empty() && tokenizer.is_special(ids.front()) ? std::optional(ids.front()) : std::nullopt;
  }

  /// Drops the oldest turns until the rest leaves `wanted` places for the answer beyond the `answered` tokens that it has; as many
  /// as one turn leaves if that is not possible. Nothing if that is no place at all; the turns are then as before.
  std::optional<std::vector<int64_t>> shift(std::vector<ChatMessage>& turns, size_t answered,
                                            int64_t wanted) const {
    std::vector<ChatMessage> left = turns;
    std::optional<std::vector<int64_t>> tokens;
    const auto places = [&] {
      return generator->info.context - static_cast<int64_t>(tokens->size() + answered);
    };
    while (drop_oldest_turn(left)) {
      tokens = tokens_of(left);
      if (places() >= wanted) break;
    }
    if (!tokens || places() < 1) return std::nullopt;
    turns = std::move(left);
    return tokens;
  }

  /// So many places a shift leaves for the rest of an answer: shifting is as dear as a prompt, and should not be done at each token.
  int64_t places_wanted(const GenerateOptions& generate, size_t answered) const {
    const int64_t rest = generate.max_tokens - static_cast<int64_t>(answered);
    return std::max<int64_t>(1, std::min(rest, generator->info.context / 4));
  }

  std::vector<int64_t> prompt_of(std::vector<ChatMessage>& turns, const GenerateOptions& generate) const {
    std::vector<int64_t> prompt = tokens_of(turns);
    if (prompt.empty())
      fail(ErrorCode::kInvalidArgument, "{}: the chat template makes no text of this turn",
           generator->config.file);
    const int64_t context = generator->info.context, room = context - static_cast<int64_t>(prompt.size());
    if (options.context_shift && room < places_wanted(generate, 0)) {
      if (auto shorter = shift(turns, 0, places_wanted(generate, 0))) return std::move(*shorter);
    }
    if (room < 0) {
      fail(ErrorCode::kInvalidArgument,
           "the conversation has {} tokens and does not fit into the context of {}: begin a new one, open "
           "the model with a larger "
           "context{}",
           prompt.size(), context,
           options.context_shift ? ", or say less at once" : ", or let context_shift drop the oldest turns");
    }
    return prompt;
  }

  ChatAnswer say(std::string_view text, const GenerateOptions& generate) {
    Answer answer(generator->tokenizer, end_ids, generate);
    std::vector<ChatMessage> turns = messages;
    turns.push_back({"user", std::string(text)});
    const size_t before = turns.size();
    const std::vector<int64_t> prompt = prompt_of(turns, generate);
    Answer::MakeRoom make_room;
    if (options.context_shift) {
      make_room = [&](Sequence& full, std::span<const int64_t> answered) -> at::Tensor {
        auto tokens = shift(turns, answered.size(), places_wanted(generate, answered.size()));
        if (!tokens) return {};
        tokens->insert(tokens->end(), answered.begin(), answered.end());
        const size_t kept = shared_tokens(full, *tokens);
        full.truncate(static_cast<int64_t>(kept));
        return full.feed(std::span(*tokens).subspan(kept));
      };
    }
    ChatAnswer result{answer.draw(sequence, prompt, make_room)};
    result.dropped_messages = static_cast<int64_t>(before - turns.size());
    turns.push_back({"assistant", result.text});
    messages = std::move(turns);
    return result;
  }

  std::shared_ptr<const Generator::State> generator;
  ConversationOptions options;
  ChatTemplate chat;
  Sequence sequence;
  ChatTemplateOptions rendering;
  std::vector<int64_t> end_ids;
  std::vector<ChatMessage> messages;
};

Conversation::Conversation(const Generator& generator, ConversationOptions options)
    : state_(std::make_unique<State>(generator.state_, std::move(options))) {}
Conversation::~Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;

ChatAnswer Conversation::say(std::string_view text, const GenerateOptions& options) {
  return state_->say(text, options);
}
void Conversation::clear() {
  state_->clear();
}
const std::vector<ChatMessage>& Conversation::messages() const {
  return state_->messages;
}
int64_t Conversation::cached_tokens() const {
  return state_->sequence.size();
}

}  // namespace halftone
