// libFuzzer target: any bytes as a chat template and a message give text, always UTF-8, or a halftone::Error. What stands behind the
// last NUL is the message.
#include "archive/bytes/text.h"
#include "halftone/base/error.h"
#include "halftone/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.rfind('\0');
  const std::string_view text = input.substr(0, end);
  const std::string message(end == std::string_view::npos ? "Hello" : input.substr(end + 1));
  try {
    const auto chat = halftone::ChatTemplate::parse(text);
    const halftone::ChatTemplateOptions options{
        .bos_token = "<s>",
        .variables = {{"tools", R"([{"name": "f", "n": 1.5, "all": [true, null]}])"}},
        .now = 1'700'000'000};
    const std::string rendered = chat.render(
        {{"system", "Be brief."}, {"user", message}, {"assistant", "Hi"}, {"user", "Why?"}}, options);
    if (!halftone::is_utf8(rendered)) __builtin_trap();
    if (rendered !=
        chat.render({{"system", "Be brief."}, {"user", message}, {"assistant", "Hi"}, {"user", "Why?"}},
                    options))
      __builtin_trap();
  } catch (const halftone::Error& error) {
    if (!halftone::is_utf8(error.what())) __builtin_trap();
  }
  return 0;
}
