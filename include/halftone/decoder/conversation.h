// A chat with a language model: turns of a user and answers, with one KV cache for all of them.
//
//   halftone::Conversation chat(halftone::Generator::open("model.gguf"), {.system = "Answer in one sentence."});
//   std::cout << chat.say("How far is the moon?").text << "\n";
//   std::cout << chat.say("And the sun?").text << "\n";
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/decoder/generate.h"
#include "halftone/text/chat_template.h"

namespace halftone {

struct ConversationOptions {
  std::string system;  ///< what the model is told first; empty: what the template says by itself, if anything
  /// What happens when the context is full. False: the answer ends (StopReason::kContextFull), and a turn that does not fit is an
  /// error. True: the oldest turns are dropped, and what is left of the conversation is computed anew.
  bool context_shift = false;
  /// Instead of the file's; the Jinja template of a model.
  std::string chat_template;
  /// Further variables of the template; see ChatTemplateOptions.
  std::map<std::string, std::string> variables;
};

struct ChatAnswer : GeneratedText {
  int64_t dropped_messages = 0;  ///< that context_shift took out of the conversation in this turn
};

/// Each turn renders the whole conversation with the model's template, keeps the part of the KV cache that is the same, and
/// computes only what is new. Not thread-safe; conversations of one Generator are independent of each other.
class HALFTONE_API Conversation {
 public:
  /// Throws kInvalidArgument if the file has no template, and what ChatTemplate::parse() throws.
  explicit Conversation(const Generator& generator, ConversationOptions options = {});
  ~Conversation();
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;

  /// The user's turn, and the model's answer to it. GenerateOptions::parse_special is ignored: the template writes special tokens,
  /// and names of special tokens in the user's text are special tokens too, as in transformers. Throws what
  /// ChatTemplate::render() throws, and kInvalidArgument if the conversation does not fit into the context; it is then as before.
  ChatAnswer say(std::string_view text, const GenerateOptions& options = {});

  /// Forgets all turns; the system prompt stays.
  void clear();

  const std::vector<ChatMessage>& messages() const;
  int64_t cached_tokens() const;  ///< in the KV cache

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halftone
