// Texts that break careless programs, for tests: those of src/bench/results/testdata/payloads.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "archive/bytes/text_file.h"

namespace halftone {

struct Payload {
  std::string what;
  std::string text;  ///< bytes; not all are UTF-8
};

inline std::vector<Payload> load_payloads() {
  std::vector<Payload> payloads;
  for (const auto& entry : nlohmann::json::parse(read_text_file(HALFTONE_PAYLOADS))) {
    Payload& payload = payloads.emplace_back();
    payload.what = entry.at("what");
    const std::string hex = entry.value("hex", "");
    for (size_t i = 0; i < hex.size(); i += 2) {
      payload.text += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    for (int i = 0; i < entry.value("repeat", 1); ++i) payload.text += entry.value("text", "");
  }
  return payloads;
}

}  // namespace halftone
