// What a tokenizer makes of texts, for the tests that compare it with other programs.
//
//   tokenizer_dump TOKENIZER TEXTS OUT [no-special] [no-parse]   the ids of each text, and what they decode to
//   tokenizer_dump TOKENIZER TEXTS --speed ROUNDS               processor seconds of the fastest round of encode() and of decode()
//
// TOKENIZER is a tokenizer.json, or GGUF metadata as JSON (*.gguf.json). TEXTS: for each text its length (32 bits) and its bytes.
// OUT: for each text the number of ids, the ids, then twice a length and a text: with and without special tokens.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "halftone/cli/text_file.h"
#include "halftone/text/tokenizer.h"

namespace {

using halftone::EncodeOptions;
using halftone::StreamDecoder;
using halftone::Tokenizer;

constexpr size_t kLargestFile = size_t{1} << 30;

template <typename T>
void read_optional(const nlohmann::json& document, const char* key, std::optional<T>& value) {
  if (document.contains(key)) value = document.at(key).get<T>();
}

Tokenizer from_gguf_json(const std::string& path) {
  const nlohmann::json document = halftone::parse_json(halftone::read_text_file(path, kLargestFile), path);
  halftone::GgufVocabulary vocabulary;
  vocabulary.name = path;
  vocabulary.model = document.at("model");
  vocabulary.pre = document.value("pre", "");
  vocabulary.tokens = document.at("tokens").get<std::vector<std::string>>();
  vocabulary.scores = document.value("scores", std::vector<float>{});
  vocabulary.token_types = document.value("token_type", std::vector<int32_t>{});
  vocabulary.merges = document.value("merges", std::vector<std::string>{});
  read_optional(document, "bos_token_id", vocabulary.bos_id);
  read_optional(document, "eos_token_id", vocabulary.eos_id);
  read_optional(document, "unknown_token_id", vocabulary.unknown_id);
  read_optional(document, "seperator_token_id", vocabulary.separator_id);  // spelled so in the format
  read_optional(document, "padding_token_id", vocabulary.padding_id);
  read_optional(document, "add_bos_token", vocabulary.add_bos);
  read_optional(document, "add_eos_token", vocabulary.add_eos);
  read_optional(document, "add_space_prefix", vocabulary.add_space_prefix);
  return Tokenizer(gguf_tokenizer_spec(vocabulary));
}

std::vector<std::string> read_texts(const std::string& path) {
  const std::string bytes = halftone::read_text_file(path, kLargestFile);
  std::vector<std::string> texts;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, 4);
    texts.push_back(bytes.substr(at + 4, length));
    at += 4 + length;
  }
  return texts;
}

void write_number(std::ostream& out, size_t number) {
  const auto value = static_cast<uint32_t>(number);
  out.write(reinterpret_cast<const char*>(&value), 4);
}

/// decode(), after StreamDecoder has given the same in parts that are UTF-8 each.
std::string decoded(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool skip_special) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string text;
  for (const int64_t id : ids) {
    const std::string part = stream.push(id);
    if (nlohmann::json(part).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) !=
        nlohmann::json(part).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore))
      halftone::fail(halftone::ErrorCode::kInternal, "a part of the stream is no UTF-8");
    text += part;
  }
  text += stream.finish();
  if (text != tokenizer.decode(ids, skip_special))
    halftone::fail(halftone::ErrorCode::kInternal, "the stream gives {}, decode() {}", text,
                   tokenizer.decode(ids, skip_special));
  return text;
}

void dump(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const EncodeOptions& options,
          std::ostream& out) {
  for (const std::string& text : texts) {
    const std::vector<int64_t> ids = tokenizer.encode(text, options);
    write_number(out, ids.size());
    for (const int64_t id : ids) write_number(out, static_cast<size_t>(id));
    for (const bool skip_special : {false, true}) {
      const std::string back = decoded(tokenizer, ids, skip_special);
      write_number(out, back.size());
      out << back;
    }
  }
}

double seconds_of(const std::function<void()>& run) {
  const std::clock_t begin = std::clock();  // of the processor: other programs may be busy
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void measure(const Tokenizer& tokenizer, const std::vector<std::string>& texts, int rounds) {
  std::vector<std::vector<int64_t>> ids(texts.size());
  double encoding = 1e9, decoding = 1e9;
  size_t bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    encoding = std::min(encoding, seconds_of([&] {
                          for (size_t i = 0; i < texts.size(); ++i) ids[i] = tokenizer.encode(texts[i]);
                        }));
    decoding = std::min(decoding, seconds_of([&] {
                          for (const auto& row : ids) bytes += tokenizer.decode(row).size();
                        }));
  }
  std::cout << nlohmann::json{{"encode", encoding}, {"decode", decoding}, {"decoded_bytes", bytes}} << "\n";
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::cerr << "usage: tokenizer_dump TOKENIZER TEXTS OUT [no-special] [no-parse] | TOKENIZER TEXTS "
                 "--speed ROUNDS\n";
    return 2;
  }
  const std::string& path = arguments[0];
  const Tokenizer tokenizer =
      path.ends_with(".gguf.json") ? from_gguf_json(path) : Tokenizer::from_file(path);
  const std::vector<std::string> texts = read_texts(arguments[1]);
  if (arguments[2] == "--speed") {
    measure(tokenizer, texts, std::stoi(arguments.at(3)));
    return 0;
  }
  const auto has = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  std::ofstream out(arguments[2], std::ios::binary);
  dump(tokenizer, texts, {.add_special = !has("no-special"), .parse_special = !has("no-parse")}, out);
  return out.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
