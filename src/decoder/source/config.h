// What a decoder computes and of which sizes, from the metadata of a GGUF file or from a config.json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archive/gguf/gguf.h"

namespace halftone {

class JsonCursor;

/// How queries and keys are turned by their position: pair i of n by the angle position · base^(-i/n) / divisors[i].
struct Rotary {
  double base = 10000;
  std::vector<double> divisors;  ///< one for each pair; empty: all 1
};

/// What one layer does differently from others.
struct DecoderLayerKind {
  bool windowed = false;  ///< attention sees DecoderConfig::window tokens, the token itself included
  int rotary = 0;         ///< which of DecoderConfig::rotaries; -1: nothing is turned
};

/// The function between the two halves of the feed-forward part.
enum class DecoderActivation { kSilu, kGelu, kGeluTanh };

/// What the RMS norm of queries and keys is over.
enum class HeadNorm { kNone, kHead, kAllHeads };

/// How transformers calls the tensors of a folder.
enum class FolderNaming { kLlama, kGpt2, kNeoX };

/// In what an architecture differs from Llama: RMS norms before attention and before the feed-forward part, rotary
/// positions, grouped queries, SiLU(gate) · up, no biases. Everything here is data; the model asks for no names.
struct DecoderTraits {
  DecoderActivation activation = DecoderActivation::kSilu;
  HeadNorm head_norm = HeadNorm::kNone;
  bool norms_before = true;  ///< of attention and of the feed-forward part
  bool norms_after = false;  ///< of their results, before these are added
  bool qkv_bias = false, output_bias = false, forward_bias = false;
  bool layer_norms = false;        ///< layer norms with biases instead of RMS norms
  bool gated = true;               ///< activation(gate) · up; else activation(up)
  bool learned_positions = false;  ///< a table of them is added to the embeddings, and nothing is turned
  bool parallel = false;           ///< the feed-forward part reads what attention reads, not what it added to
};

/// Every size is checked against the tensors when those are read.
struct DecoderConfig : DecoderTraits {
  std::string file;  ///< for messages
  std::string architecture, name, chat_template;
  int64_t layers = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_width = 0;
  int64_t hidden = 0;  ///< width of the feed-forward part
  int64_t vocabulary = 0;
  int64_t trained_context = 0;
  double norm_eps = 1e-5;
  std::vector<int64_t> end_ids;  ///< tokens that end an answer, besides the tokenizer's own

  int64_t window = 0;                   ///< of layers that are windowed; 0: no layer is
  std::vector<DecoderLayerKind> kinds;  ///< one for each layer; empty: all alike
  std::vector<Rotary> rotaries = {Rotary{}};
  int64_t rotary_width = 0;  ///< numbers of a head that are turned; 0: all

  double attention_scale = 0;  ///< of queries · keys; 0: 1 / sqrt(head_width)
  double attention_cap = 0;    ///< c: scores become c · tanh(score / c); 0: no cap
  double logit_cap = 0;        ///< the same of the logits
  double embedding_scale = 1, residual_scale = 1,
         logit_scale = 1;  ///< factors; read_decoder_weights() folds them

  /// How the file has the weights. Pairs that are turned together: neighbours, else one half of a head apart.
  bool neighbour_pairs = false;
  FolderNaming naming = FolderNaming::kLlama;
  bool transposed = false;    ///< linears are [inputs, outputs]
  bool qkv_by_heads = false;  ///< joined queries, keys and values: [heads, 3, head width] rows
  double norm_offset = 0;     ///< added to the weights of norms
  std::optional<bool> tied;   ///< whether the head is the embedding; nothing: where the file has no head

  int64_t cache_values(int64_t context) const { return 2 * layers * kv_heads * head_width * context; }
  int64_t turned_width() const { return rotary_width == 0 ? head_width : rotary_width; }
  DecoderLayerKind kind_of(int64_t layer) const {
    return kinds.empty() ? DecoderLayerKind{} : kinds[static_cast<size_t>(layer)];
  }
  /// Whether some layer cannot see all of a cache of so many tokens.
  bool has_window_within(int64_t context) const;
};

/// What is known of an architecture before its file is read.
struct Architecture {
  std::string_view gguf, model_type;  ///< general.architecture; model_type in config.json
  DecoderTraits traits;
  bool gguf_neighbour_pairs = false;  ///< as llama.cpp's converter reorders queries and keys
  bool scales_embedding = false;      ///< by sqrt(width)
  bool norm_is_one_plus = false;      ///< in config.json's files; llama.cpp's converter adds the 1
  int64_t whole_every = 0;            ///< of windowed layers each n-th sees everything; 0: none does
  int64_t unturned_every = 0;         ///< each n-th layer turns nothing
  double local_rotary_base = 0;       ///< of windowed layers; 0: as the others
  double rotary_base = 10000;         ///< where the file names none
  FolderNaming naming = FolderNaming::kLlama;
};

/// kUnsupported with the names that are known.
const Architecture& architecture_of_gguf(std::string_view name, const std::string& path);
const Architecture& architecture_of_model_type(std::string_view name, const std::string& path);

/// The config of this architecture before anything is read: traits, and DecoderConfig::file.
DecoderConfig config_for(const Architecture& architecture, const std::string& path);
/// Kinds of layers by the architecture's rules, where config.window is set; config.layers must be known.
void set_layer_kinds(const Architecture& architecture, DecoderConfig& config);
/// Divisors by which the model's context becomes `factor` times as long.
std::vector<double> linear_divisors(const DecoderConfig& config, double factor);
/// A size from a file. kCorruptFile, with file and field, if it is not from 1 to `max`.
int64_t checked_size(const DecoderConfig& config, std::string_view field, int64_t value, int64_t max);
/// What no tensor is compared with: sizes that do not go together, numbers that are none. kCorruptFile with the fields.
void check_decoder_config(const DecoderConfig& config);

// Far above every published model, far below what would overflow or take all memory for nothing.
inline constexpr int64_t kMaxDecoderLayers = 1024;
inline constexpr int64_t kMaxDecoderWidth = int64_t{1} << 17;
inline constexpr int64_t kMaxDecoderVocabulary = int64_t{1} << 22;
inline constexpr int64_t kMaxDecoderContext = int64_t{1} << 30;

/// Throws kUnsupported for an architecture that is not known, or a known one in a form that is not (its key is named);
/// kCorruptFile for sizes that cannot be.
DecoderConfig read_decoder_config(const GgufReader& file, const std::string& path);
/// The same from the contents of a config.json, whose path the cursor has.
DecoderConfig read_decoder_config(const JsonCursor& file);

}  // namespace halftone
