// What ChatTemplate adds to the renderer, which oracle_test.py compares with the package jinja2.
#include "halftone/text/chat_template.h"

#include <gtest/gtest.h>

#include <thread>

namespace halftone {
namespace {

constexpr const char* kTurns =
    "{{ bos_token }}{% for message in messages %}\n"
    "<{{ message['role'] }}>{{ message.content | trim }}{{ eos_token }}\n"
    "{% endfor %}\n"
    "{% if add_generation_prompt %}<assistant>{% endif %}\n";

std::string rendered(const std::string& text, const std::vector<ChatMessage>& messages = {{"user", "Hello"}},
                     const ChatTemplateOptions& options = {}) {
  return ChatTemplate::parse(text).render(messages, options);
}

TEST(ChatTemplate, RendersMessages) {
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", " Hi! \n"}, {"assistant", "Hello"}};
  EXPECT_EQ(rendered(kTurns, messages, {.bos_token = "<s>", .eos_token = "</s>"}),
            "<s><system>Be brief.</s>\n<user>Hi!</s>\n<assistant>Hello</s>\n<assistant>");
  EXPECT_EQ(rendered(kTurns, {}, {.add_generation_prompt = false, .bos_token = "<s>"}), "<s>");
}

TEST(ChatTemplate, HasTheVariablesThatTransformersPasses) {
  EXPECT_EQ(rendered("{{ tools }} {{ documents is none }} {{ bos_token | length }} {{ other is defined }}"),
            "None True 0 False");
  const ChatTemplateOptions options{
      .variables = {{"tools", R"([{"name": "f", "arguments": {"z": 1, "a": 2}}])"}, {"thinking", "false"}}};
  EXPECT_EQ(rendered("{{ tools[0] | tojson }} {{ thinking }}", {}, options),
            R"({"name": "f", "arguments": {"z": 1, "a": 2}} False)");
  EXPECT_EQ(rendered("{{ messages }}", {{"user", "x"}}, {.variables = {{"messages", "[]"}}}), "[]");
}

TEST(ChatTemplate, TellsTheGivenTime) {
  const std::time_t noon = 1'700'000'000;
  char expected[64];
  std::tm local{};
  std::strftime(expected, sizeof expected, "%d %b %Y, %H:%M %%", localtime_r(&noon, &local));
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y, %H:%M %%') }}", {}, {.now = noon}), expected);
  EXPECT_EQ(rendered("[{{ strftime_now('') }}]"), "[]");
  EXPECT_EQ(rendered("{{ strftime_now('%Y') | int > 2000 }}"), "True");
}

TEST(ChatTemplate, MessagesThatAreNoUtf8AreRepaired) {
  EXPECT_EQ(rendered("{{ messages[0].content }}{{ messages[0].content | length }}", {{"user", "a\xff\xe4z"}}),
            "a\ufffd\ufffdz4");
}

TEST(ChatTemplate, ServesManyThreads) {
  const ChatTemplate chat = ChatTemplate::parse(kTurns);
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) results[i] = chat.render({{"user", std::to_string(i)}});
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i], "<user>" + std::to_string(i) + "\n<assistant>");
}

/// A conversation as long as a context of a hundred thousand tokens stays far within the bounds.
TEST(ChatTemplate, LongConversationsAreWithinTheBounds) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 1000; ++i)
    messages.push_back({i % 2 == 0 ? "user" : "assistant", std::string(2000, 'x')});
  const std::string text = rendered(
      "{% set ns = namespace(last=0) %}{% for m in messages %}{% set content = m.content | trim %}{% if "
      "m.role == 'user' and not "
      "m.content.startswith('<tool>') %}{% set ns.last = loop.index0 %}{% endif %}{{ '<|im_start|>' + m.role "
      "+ '\\n' + content + "
      "'<|im_end|>' + '\\n' }}{% endfor %}{{ ns.last }}",
      messages);
  EXPECT_GT(text.size(), size_t{2'000'000});
  EXPECT_TRUE(text.ends_with("998"));
}

}  // namespace
}  // namespace halftone
