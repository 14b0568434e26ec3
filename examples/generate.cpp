// generate MODEL.gguf: continues a text with a language model.
#include <halftone/decoder/generate.h>

#include <iostream>

int main(int argc, char** argv) {
  try {
    const auto generator = halftone::Generator::open(argc > 1 ? argv[1] : "model.gguf", {.scheme = "int8dq"});
    halftone::GenerateOptions options{.max_tokens = 64};
    options.on_text = [](std::string_view text) {
      std::cout << text << std::flush;
      return true;
    };
    const auto answer = generator.generate("The house stood at the end of", options);
    std::cerr << "\n" << answer.tokens.size() << " tokens in " << answer.answer_seconds << " s\n";
  } catch (const halftone::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
