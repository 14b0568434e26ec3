// tokenize TOKENIZER.json: each line of text to ids, and back to text one id after the other, as a model gives them.
#include <halftone/text/tokenizer.h>

#include <iostream>
int main(int argc, char** argv) {
  const auto tokenizer = halftone::Tokenizer::from_file(argc > 1 ? argv[1] : "tokenizer.json");
  for (std::string line; std::getline(std::cin, line);) {
    halftone::StreamDecoder stream(tokenizer);
    for (const int64_t id : tokenizer.encode(line)) {
      std::cout << id << " " << stream.push(id) << "\n";  // never half a character
    }
    std::cout << stream.finish() << "\n";
  }
}
