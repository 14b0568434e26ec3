// decoder_dump: runs models on tokens, for tests that compare logits.
//
// A line of stdin: {"model": PATH, "tokens": [ids], "pieces": [lengths], "context": N}. A line of stdout: {"logits": [a row
// after each piece], "left_to_aten": […]} or {"error": TEXT, "code": TEXT}.
#include <ATen/ops/zeros.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "decoder/sequence.h"
#include "decoder/source/decoder_source.h"
#include "halftone/base/error.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

using nlohmann::json;

json run(const json& job) {
  const DecoderSource source = open_decoder_source(job.at("model").get<std::string>());
  const int64_t context = job.at("context").get<int64_t>();
  const auto module =
      capture_decoder(source.config, read_decoder_weights(*source.weights, source.config), context);
  const auto compiled = compile(module, {.threads = 1});  // tests run beside others
  const bool windowed = source.config.has_window_within(context);
  const CompiledDecoder decoder{module, compiled, context, windowed ? source.config.window : 0};
  Sequence sequence(decoder);
  const auto tokens = job.at("tokens").get<std::vector<int64_t>>();
  json rows = json::array();
  size_t at = 0;
  for (const json& piece : job.at("pieces")) {
    const auto length = piece.get<size_t>();
    const at::Tensor logits = sequence.feed(std::span(tokens).subspan(at, length));
    const float* values = logits.const_data_ptr<float>();
    rows.push_back(std::vector<float>(values, values + logits.numel()));
    at += length;
  }
  json left = json::array();
  for (const auto& each : compiled->report(decoder.inputs(at::zeros({1, 1}, at::kLong), 0, 8)).left_to_aten)
    left.push_back(each);
  return {{"logits", std::move(rows)}, {"left_to_aten", std::move(left)}};
}

}  // namespace
}  // namespace halftone

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer;
    try {
      answer = halftone::run(nlohmann::json::parse(line));
    } catch (const halftone::Error& error) {
      answer = {{"error", error.what()}, {"code", halftone::to_string(error.code())}};
    }
    std::cout << answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
  }
}
