#include "archive/bytes/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "base/errors.h"

namespace halftone {
namespace {

// zlib counts with 32 bits.
constexpr size_t kMaxAtOnce = size_t{1} << 30;
constexpr int kRawDeflate = -MAX_WBITS;  // without the header and checksum of zlib's own format

}  // namespace

struct Inflater::Stream {
  z_stream state{};
  bool ended = false;
};

Inflater::Inflater(std::span<const std::byte> packed, std::string where)
    : packed_(packed), where_(std::move(where)), stream_(std::make_unique<Stream>()) {
  if (inflateInit2(&stream_->state, kRawDeflate) != Z_OK)
    fail(ErrorCode::kInternal, "{}: no memory to inflate it", where_);
}

Inflater::~Inflater() {
  inflateEnd(&stream_->state);
}

size_t Inflater::read_some(std::span<std::byte> out) {
  z_stream& state = stream_->state;
  size_t filled = 0;
  while (filled < out.size() && !stream_->ended) {
    if (state.avail_in == 0 && !packed_.empty()) {
      const size_t more = std::min(packed_.size(), kMaxAtOnce);
      // zlib does not write there, whatever its types say.
      state.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data()));
      state.avail_in = static_cast<uInt>(more);
      packed_ = packed_.subspan(more);
    }
    const size_t wanted = std::min(out.size() - filled, kMaxAtOnce);
    state.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    state.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&state, Z_NO_FLUSH);
    filled += wanted - state.avail_out;
    stream_->ended = result == Z_STREAM_END;
    const bool cut_off = result == Z_BUF_ERROR && packed_.empty();
    if (cut_off) fail(ErrorCode::kCorruptFile, "{}: its deflated data are cut off", where_);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      fail(ErrorCode::kCorruptFile, "{}: no deflated data: {}", where_,
           state.msg != nullptr ? state.msg : "broken");
  }
  return filled;
}

void Inflater::read(std::span<std::byte> out) {
  const size_t filled = read_some(out);
  if (filled < out.size())
    fail(ErrorCode::kCorruptFile, "{}: its deflated data end {} bytes too early", where_,
         out.size() - filled);
}

void Inflater::expect_end() {
  std::byte more{};
  if (read_some({&more, 1}) != 0 || !stream_->ended)
    fail(ErrorCode::kCorruptFile, "{}: its deflated data are longer than it says", where_);
  if (stream_->state.avail_in != 0 || !packed_.empty())
    fail(ErrorCode::kCorruptFile, "{}: bytes behind its deflated data", where_);
}

}  // namespace halftone
