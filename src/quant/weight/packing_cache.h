// Packed panels of quantized weights: made at first use from the plain parts, and kept as long as those live.
//
// An entry belongs to the parts' storages, which it holds weakly: views, detached copies and other handles of
// one weight share its panels, and they are freed soon after the last handle is gone. A part that was
// replaced, resized or written to in place no longer matches (data pointer, sizes, strides and version are
// compared), so it is packed anew. Not seen are writes that leave no trace in the version: through a raw
// pointer, through `.data`, or to tensors made in InferenceMode, which have no version; call forget_packed()
// after those.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halftone {

/// How a block is laid out. Kernels that read the same layout share a block.
struct PackLayout {
  std::string_view kind;  ///< "int8_weight_only_linear"; a literal
  int version = 0;        ///< of the kind
  int tile_n = 0;
  int tile_k = 1;
  bool operator==(const PackLayout&) const = default;
  /// "int8_linear/v1/16x4": stands in files beside the block.
  std::string to_string() const;
};

/// A block and its layout; bytes is uint8 [bytes], aligned to 64.
struct PackedBlock {
  std::string layout;
  at::Tensor bytes;
};

/// Writes a block to memory of the size that was asked for, aligned to 64.
using PackFunction = c10::function_ref<void(void* out)>;

/// Throws unless a stored block of the right size is what `pack` would make, as far as it can be known in
/// much less time than packing takes: at least everything that says what a kernel reads.
using CheckFunction = c10::function_ref<void(const void* block)>;

/// The cached block of these parts (undefined ones are ignored), made by `pack` if there is none of this
/// layout. A block that was adopted is first compared with the parts: its size, then by `check`; without one,
/// all of it with a new one. kCorruptFile if it differs, naming the layout.
/// Thread-safe; two threads that come first at once may both pack, and then share one block.
at::Tensor packed_block(const std::vector<at::Tensor>& parts, const PackLayout& layout, size_t bytes,
                        PackFunction pack, std::optional<CheckFunction> check = std::nullopt);

/// What the cache holds for these parts. An operator packs at its first call, also of an empty batch.
std::vector<PackedBlock> packed_of(const std::vector<at::Tensor>& parts);

/// How an adopted block is compared with its parts.
enum class PackedTrust {
  kCheck,    ///< by packed_block's check: the header, and a sample of the weights
  kCompare,  ///< with a new one, byte by byte
};

/// Offers a block that was stored, also in mapped memory. It is used if the operator wants that very layout,
/// else never read. kInvalidArgument if it is not uint8, contiguous, on the CPU and aligned to 64.
void adopt_packed(const std::vector<at::Tensor>& parts, PackedBlock block,
                  PackedTrust trust = PackedTrust::kCheck);

/// Drops all blocks of which `part` is a part.
void forget_packed(const at::Tensor& part);

struct PackingCacheStats {
  size_t entries = 0;
  size_t bytes = 0;
  size_t packed = 0;  ///< blocks made since the process began
};
/// Purges dead entries first.
PackingCacheStats packing_cache_stats();

}  // namespace halftone
