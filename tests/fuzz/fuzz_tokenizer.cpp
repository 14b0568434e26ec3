// libFuzzer target: any bytes as tokenizer.json and a text give ids and text back, or a halftone::Error. The first line is the JSON, the
// rest is the text.
#include <algorithm>

#include "archive/bytes/text.h"
#include "halftone/base/error.h"
#include "halftone/text/tokenizer.h"

namespace {

void run(const halftone::Tokenizer& tokenizer, std::string_view text,
         const halftone::EncodeOptions& options) {
  const std::vector<int64_t> ids = tokenizer.encode(text, options);
  for (const bool skip_special : {false, true}) {
    halftone::StreamDecoder stream(tokenizer, skip_special);
    std::string streamed;
    for (const int64_t id : ids) {
      if (!tokenizer.is_token(id)) __builtin_trap();
      const std::string part = stream.push(id);
      if (!halftone::is_utf8(part)) __builtin_trap();
      streamed += part;
    }
    streamed += stream.finish();
    if (streamed != tokenizer.decode(ids, skip_special)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), size);
  try {
    const auto tokenizer = halftone::Tokenizer::from_json(input.substr(0, line), "fuzz.json");
    const std::string_view text = input.substr(line);
    run(tokenizer, text, {});
    run(tokenizer, text, {.add_special = false, .parse_special = false});
    for (int64_t id = 0; id < std::min<int64_t>(tokenizer.id_bound(), 64); ++id) {
      if (tokenizer.is_token(id)) tokenizer.token_bytes(id);
    }
  } catch (const halftone::Error&) {
  }
  return 0;
}
