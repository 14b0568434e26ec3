// halftone chat: a conversation with a language model, at a terminal or through a pipe.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/command_line.h"
#include "common/console.h"
#include "common/language_model.h"
#include "halftone/cli/message.h"
#include "halftone/cli/text_file.h"
#include "halftone/decoder/conversation.h"

namespace halftone::cli {

namespace {

constexpr const char* kChatDescription =
    "Chat with a language model from a GGUF file\n\n"
    "Each line of stdin is what the user says; the model's answer goes to stdout as it comes. The chat\n"
    "template is the file's. The KV cache is kept, so that a turn computes only what is new.\n"
    "At a terminal, /clear begins anew, /exit or Ctrl-D ends, and Ctrl-C ends an answer. In a pipe the\n"
    "lines /clear and /exit do the same. Each option may be set by an environment variable too:\n"
    "HALFTONE_SYSTEM=\"Be brief.\" is --system \"Be brief.\".";
constexpr const char* kChatExamples = R"(Examples:
  halftone chat model.gguf
  halftone chat model.gguf --system "You answer in one sentence." --temp 0
  printf 'What is a house?\nWhy?\n' | halftone chat model.gguf -n 64 --json)";

constexpr int64_t kAnswerTokens = 512;

struct ChatRequest : LanguageModelOptions {
  ConversationOptions conversation;
  std::string template_file;
};

// A signal handler may do no more than this.
volatile std::sig_atomic_t wants_to_end = 0;

/// While one of these lives, Ctrl-C ends the answer and not the program.
class EndsTheAnswer {
 public:
  EndsTheAnswer() {
    wants_to_end = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { wants_to_end = 1; };
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &before_);
  }
  ~EndsTheAnswer() { sigaction(SIGINT, &before_, nullptr); }
  EndsTheAnswer(const EndsTheAnswer&) = delete;
  EndsTheAnswer& operator=(const EndsTheAnswer&) = delete;

 private:
  struct sigaction before_ {};
};

class ChatSession {
 public:
  ChatSession(const ChatRequest& request, const CommonOptions& common, const Generator& generator,
              Console& console)
      : options_(request.generate),
        json_(common.json),
        at_terminal_(isatty(STDIN_FILENO) == 1),
        conversation_(generator, request.conversation),
        console_(console) {
    if (!json_) {
      options_.on_text = [this](std::string_view text) {
        console_.result(text);
        std::fflush(stdout);
        return wants_to_end == 0;
      };
    } else {
      options_.on_text = [](std::string_view) { return wants_to_end == 0; };
    }
  }

  void run() {
    if (at_terminal_) console_.info("/clear begins a new conversation, /exit ends; Ctrl-C ends an answer");
    std::string line;
    while (ask() && std::getline(std::cin, line)) {
      if (line.ends_with('\r')) line.pop_back();
      if (line == "/exit") break;
      if (line == "/clear") {
        conversation_.clear();
        console_.info("a new conversation");
      } else if (!line.empty()) {
        answer(line);
      }
    }
    if (at_terminal_) std::fputs("\n", stderr);
  }

 private:
  bool ask() const {
    if (at_terminal_) std::fputs("> ", stderr);
    return true;
  }

  void answer(const std::string& line) {
    std::optional<EndsTheAnswer> ends;
    if (at_terminal_) ends.emplace();
    try {
      show(conversation_.say(line, options_));
    } catch (const Error& error) {
      // At a terminal the user can say something else, or /clear.
      if (!at_terminal_) throw;
      Console::error(bounded_message(error.what()));
    }
  }

  void show(const ChatAnswer& answer) {
    if (json_) {
      nlohmann::ordered_json report = answer_as_json(answer);
      report["reused_tokens"] = answer.reused_tokens;
      report["dropped_messages"] = answer.dropped_messages;
      console_.result(report.dump() + "\n");
    } else {
      console_.result("\n");
    }
    std::fflush(stdout);
    if (answer.dropped_messages > 0)
      console_.info(
          fmt::format("the context was full: the oldest {} messages were dropped", answer.dropped_messages));
    if (answer.stop_reason == StopReason::kContextFull)
      console_.warn(
          "the context is full and the answer ends here: /clear begins anew, --context-shift drops the "
          "oldest turns");
    console_.detail(describe_speed(answer));
  }

  GenerateOptions options_;
  bool json_;
  bool at_terminal_;
  Conversation conversation_;
  Console& console_;
};

void chat(ChatRequest request, const CommonOptions& common, Console& console) {
  if (!request.template_file.empty())
    request.conversation.chat_template = read_text_file(request.template_file, size_t{1} << 20);
  const Generator generator = open_language_model(request, common, "halftone chat model.gguf", console);
  ChatSession(request, common, generator, console).run();
}

}  // namespace

void add_chat(CLI::App& app, CommandLine& line) {
  auto request = std::make_shared<ChatRequest>();
  request->generate.max_tokens = kAnswerTokens;
  CLI::App* command = app.add_subcommand("chat", kChatDescription);
  command->footer(kChatExamples);
  add_language_model_options(*command, *request);
  with_variable(command->add_option("--system", request->conversation.system, "What the model is told first")
                    ->type_name("TEXT"));
  command->add_flag("--context-shift", request->conversation.context_shift,
                    "When the context is full: drop the oldest turns and go on");
  with_variable(command
                    ->add_option("--chat-template-file", request->template_file,
                                 "A Jinja template instead of the model's own")
                    ->type_name("F.jinja"));
  add_common_options(*command, line.common);
  command->callback([&line, request] {
    line.job = [&line, request](Console& console) { chat(*request, line.common, console); };
  });
}

}  // namespace halftone::cli
