// minilm_hidden_states MODEL_DIR OUT.safetensors < SENTENCES: one batch of all lines of standard input
// through tokenizer and C++ encoder; writes ids, mask and hidden. encoder_test.py compares them with the
// Python module.
#include <c10/core/InferenceMode.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "halftone/graph/tensor_file.h"
#include "minilm/embedder.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: minilm_hidden_states MODEL_DIR OUT.safetensors < SENTENCES\n";
    return 2;
  }
  try {
    const c10::InferenceMode inference;
    std::vector<std::string> sentences;
    for (std::string line; std::getline(std::cin, line);) sentences.push_back(line);
    minilm::Encoder encoder = minilm::load_encoder(argv[1]);
    const auto tokenizer = minilm::Tokenizer::from_file(std::string(argv[1]) + "/vocab.txt");
    const auto [ids, mask] = minilm::token_tensors(tokenizer.encode_batch(sentences));
    halftone::save_tensors(argv[2], {{"ids", ids}, {"mask", mask}, {"hidden", encoder(ids, mask)}});
  } catch (const std::exception& error) {
    std::cerr << "minilm_hidden_states: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
