#include "halftone/text/chat_template.h"

#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "base/json.h"
#include "text/template/json_values.h"
#include "text/template/parser.h"
#include "text/template/render.h"
#include "text/unicode.h"

namespace halftone {

namespace {

constexpr size_t kMaxTemplateBytes = size_t{512} << 10;  // published ones are at most some tens of kilobytes

using Variables = std::vector<std::pair<std::string, jinja::Value>>;

jinja::Value variable(jinja::Rendering& rendering, const std::string& name, const std::string& json) {
  // Its own reader checks duplicate keys, depth and size, but sorts the members.
  parse_json(json, fmt::format("the variable {}", name), {.max_depth = 64, .max_bytes = size_t{16} << 20});
  return jinja::json_value(rendering, nlohmann::ordered_json::parse(json));
}

Variables variables_of(jinja::Rendering& rendering, const std::vector<ChatMessage>& messages,
                       const ChatTemplateOptions& options) {
  const auto text = [&](std::string_view bytes) {
    std::string storage;
    return rendering.text(std::string(repaired_utf8(bytes, storage)));
  };
  std::vector<jinja::Value> list;
  for (const ChatMessage& message : messages)
    list.push_back(
        rendering.dict({{text("role"), text(message.role)}, {text("content"), text(message.content)}}));
  Variables variables = {{"messages", rendering.list(std::move(list))},
                         {"add_generation_prompt", options.add_generation_prompt},
                         {"bos_token", text(options.bos_token)},
                         {"eos_token", text(options.eos_token)}};
  // transformers passes these two, as None where there are none.
  for (const char* name : {"tools", "documents"})
    if (!options.variables.contains(name)) variables.emplace_back(name, jinja::None{});
  for (const auto& [name, json] : options.variables) {
    std::erase_if(variables, [&known = name](const auto& each) { return each.first == known; });
    variables.emplace_back(name, variable(rendering, name, json));
  }
  return variables;
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string name;
  jinja::StatementList statements;
};

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& name) {
  if (text.size() > kMaxTemplateBytes)
    fail(ErrorCode::kCorruptFile, "{}: {} bytes; a template may have {}", name, text.size(),
         kMaxTemplateBytes);
  if (!is_utf8(text)) fail(ErrorCode::kCorruptFile, "{}: it is no UTF-8", name);
  return ChatTemplate(std::make_shared<Parsed>(Parsed{name, jinja::parse_template(text, name)}));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                 const ChatTemplateOptions& options) const {
  jinja::Rendering rendering(parsed_->name, options.now.value_or(std::time(nullptr)));
  return jinja::render(rendering, parsed_->statements, variables_of(rendering, messages, options));
}

}  // namespace halftone
