// chat MODEL.gguf: a conversation with a language model; each line of the input is what the user says.
#include <halftone/decoder/conversation.h>

#include <iostream>

int main(int argc, char** argv) {
  try {
    const auto generator = halftone::Generator::open(argc > 1 ? argv[1] : "model.gguf");
    halftone::Conversation chat(generator, {.system = "You answer in one sentence.", .context_shift = true});
    halftone::GenerateOptions options{.max_tokens = 200};
    options.on_text = [](std::string_view text) {
      std::cout << text << std::flush;
      return true;
    };
    for (std::string line; std::getline(std::cin, line);) {
      const halftone::ChatAnswer answer = chat.say(line, options);
      std::cout << "\n";
      std::cerr << answer.reused_tokens << " of " << answer.prompt_tokens << " tokens were in the cache\n";
    }
  } catch (const halftone::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
