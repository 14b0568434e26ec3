// check_gguf(): what can be wrong with a GGUF file that opens.
#include <algorithm>
#include <cmath>

#include "archive/bytes/text.h"
#include "archive/gguf/gguf_blocks.h"
#include "archive/gguf/gguf_describe.h"
#include "base/errors.h"
#include "base/sha256.h"

namespace halftone {
namespace {

/// More are counted only.
constexpr size_t kMaxGgufFindings = 100;
constexpr size_t kValuesAtOnce = size_t{1} << 16;

class GgufChecker {
 public:
  explicit GgufChecker(const GgufReader& file) : file_(file) {}

  std::vector<std::string> run(bool numbers) {
    check_metadata();
    check_lengths("tokenizer.ggml.scores");
    check_lengths("tokenizer.ggml.token_type");
    check_unowned_bytes();
    if (numbers) {
      for (const GgufTensor& tensor : file_.tensors()) check_numbers(tensor);
    }
    if (unnamed_ > 0) findings_.push_back(fmt::format("and {} more", unnamed_));
    return std::move(findings_);
  }

 private:
  template <typename... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    if (findings_.size() < kMaxGgufFindings) {
      findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
    } else {
      ++unnamed_;
    }
  }

  void check_metadata() {
    const GgufValue* architecture = file_.try_value("general.architecture");
    if (architecture == nullptr) {
      report("metadata \"general.architecture\" is missing");
    } else if (!architecture->try_string()) {
      report("metadata \"general.architecture\" is {}, expected string", architecture->describe_type());
    }
  }

  /// Scores and types of tokens are arrays beside the tokens.
  void check_lengths(std::string_view key) {
    const GgufValue* tokens = file_.try_value("tokenizer.ggml.tokens");
    const GgufValue* beside = file_.try_value(key);
    if (tokens != nullptr && beside != nullptr && tokens->size() != beside->size())
      report("metadata {}: {} elements for {} tokens", quote_text(key), beside->size(), tokens->size());
  }

  /// Between the tensors only padding may stand: zeros, fewer than the alignment. A tensor of unknown type owns what
  /// follows it.
  void check_unowned_bytes() {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (tensor.values > 0) order.push_back(&tensor);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->offset < b->offset; });
    uint64_t covered = file_.data_offset();
    for (const GgufTensor* tensor : order) {
      check_gap(covered, tensor->offset, "before tensor " + quote_text(tensor->name));
      covered = tensor->has_known_size ? tensor->offset + tensor->bytes.size() : UINT64_MAX;
    }
    check_gap(covered, file_.file()->bytes().size(), "at the end");
  }

  void check_gap(uint64_t begin, uint64_t end, const std::string& where) {
    if (begin >= end) return;
    if (end - begin >= file_.alignment()) {
      report("{} bytes {} belong to no tensor", end - begin, where);
      return;
    }
    const auto gap = file_.file()->bytes().subspan(begin, end - begin);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      report("the padding {} is not zero", where);
  }

  void check_numbers(const GgufTensor& tensor) {
    const GgmlFormat* format = try_ggml_format(tensor.type);
    if (format == nullptr || !format->readable) return;
    const size_t step = kValuesAtOnce / format->values;
    const size_t blocks = tensor.bytes.size() / format->bytes;
    values_.resize(kValuesAtOnce);
    int64_t wrong = 0;
    int64_t first = 0;
    for (size_t block = 0; block < blocks; block += step) {
      const size_t count = std::min(step, blocks - block);
      const auto values = std::span(values_).first(count * format->values);
      dequantize_blocks(format->type, tensor.bytes.subspan(block * format->bytes, count * format->bytes),
                        values);
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isfinite(values[i])) continue;
        if (wrong++ == 0) first = static_cast<int64_t>(block * format->values + i);
      }
    }
    if (wrong > 0)
      report("tensor {}: {} of its {} numbers are not finite, the first at place {}", quote_text(tensor.name),
             wrong, tensor.values, first);
  }

  const GgufReader& file_;
  std::vector<float> values_;
  std::vector<std::string> findings_;
  size_t unnamed_ = 0;
};

}  // namespace

GgufCheck check_gguf(const std::string& path, bool numbers) {
  // Mapped: such files may be larger than the memory.
  const GgufReader file = GgufReader::open(path, LoadMode::kMap);
  GgufCheck check;
  check.description = describe(file);
  check.numbers_checked = numbers;
  check.findings = GgufChecker(file).run(numbers);
  if (numbers) check.sha256 = to_hex(sha256(file.file()->bytes()));
  return check;
}

}  // namespace halftone
