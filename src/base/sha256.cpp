#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/errors.h"

namespace halftone {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

namespace {
void require(int status) {
  if (status != 1) fail(ErrorCode::kInternal, "OpenSSL refused a SHA-256 operation");
}
}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest{};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(state_->context, digest.data(), &length));
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
  std::string text;
  for (uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace halftone
