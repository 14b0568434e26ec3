// The prompt that a language model was trained to answer, from the messages of a chat: the chat template that comes with the model.
//
//   const auto chat = halftone::ChatTemplate::parse(generator.chat_template());
//   const std::string prompt = chat.render({{{"user", "How far is the moon?"}}});
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};

struct ChatTemplateOptions {
  bool add_generation_prompt = true;  ///< ends with what stands before an answer
  std::string bos_token, eos_token;   ///< the texts of the model's tokens
  /// More variables of the template, each value as JSON: {"enable_thinking", "false"}, {"date_string", "\"1 May 2025\""}.
  std::map<std::string, std::string> variables;
  std::optional<std::time_t> now;  ///< what strftime_now() tells, in local time; nothing: the clock's
};

/// A template in the part of Jinja that published chat templates use, with transformers' settings and functions: what it renders
/// is what `tokenizer.apply_chat_template(messages, tokenize=False)` gives. Immutable, so one serves many threads.
///
/// Templates come from outside: text, nesting, steps, memory and output are bounded. No code is run and no file read.
class HALFTONE_API ChatTemplate {
 public:
  /// `name` stands first in errors, then the line. Throws halftone::Error: kCorruptFile for what is no template, kUnsupported with
  /// the name of a construct that is not known.
  static ChatTemplate parse(std::string_view text, const std::string& name = "chat template");

  /// The text that the model continues. Special tokens are written out in it: encode it with parse_special and without
  /// add_special. Bytes of the messages that are no UTF-8 become U+FFFD.
  ///
  /// Throws kInvalidArgument for what the template refuses (raise_exception) or cannot do with these messages, kUnsupported for a
  /// filter, test or method that is not known, kCorruptFile if it takes too many steps or too much memory.
  std::string render(const std::vector<ChatMessage>& messages, const ChatTemplateOptions& options = {}) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace halftone
