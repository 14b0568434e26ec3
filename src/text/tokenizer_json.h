// The parts of a tokenizer.json, each with its own `type`. Sequences of them become flat lists.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/json.h"
#include "halftone/text/tokenizer_spec.h"

namespace halftone {

/// Throws kUnsupported for a key of the object that is not in `known`.
void check_keys(const JsonCursor& place, std::initializer_list<std::string_view> known);
[[noreturn]] void fail_unsupported(const JsonCursor& place, std::string_view what, std::string_view name);

void read_normalizer(const JsonCursor& place, std::vector<NormalizerStep>& steps);
void read_pre_tokenizer(const JsonCursor& place, std::vector<PreTokenizerStep>& steps);
void read_decoder(const JsonCursor& place, std::vector<DecoderStep>& steps);
void read_post_processor(const JsonCursor& place, TokenizerSpec& spec);
void read_tokenizer_model(const JsonCursor& place, TokenizerModel& model);

}  // namespace halftone
