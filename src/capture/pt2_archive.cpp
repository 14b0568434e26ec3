#include "capture/pt2_archive.h"

#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "capture/payload.h"

namespace halftone {
namespace {

std::string_view text_of(const ZipMember& member) {
  return {reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size()};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

}  // namespace

Pt2Archive::Pt2Archive(const std::string& path, const OpenOptions& options)
    : file_(path),
      bytes_(FileBytes::open(path, options.map ? LoadMode::kMap : LoadMode::kRead)),
      zip_(bytes_->bytes(), path),
      verify_(options.verify) {
  find_root();
  check_header();
  find_model();
}

void Pt2Archive::find_root() {
  for (const ZipMember& member : zip_.members()) {
    const size_t slash = member.name.find('/');
    const std::string root = slash == std::string::npos ? std::string() : member.name.substr(0, slash + 1);
    if (root.empty())
      fail(ErrorCode::kCorruptFile, "{}: member {} is outside the root folder", file_, member.name);
    if (root_.empty()) root_ = root;
    if (root != root_) fail(ErrorCode::kCorruptFile, "{}: two root folders, {} and {}", file_, root_, root);
  }
  if (root_.empty()) fail(ErrorCode::kCorruptFile, "{}: the container is empty", file_);
}

void Pt2Archive::check_header() const {
  if (!try_member("archive_format") || text_member("archive_format") != "pt2") {
    const char* hint =
        try_member("data.pkl") ? "; it looks like what torch.save or torch.jit.save writes" : "";
    fail(ErrorCode::kCorruptFile, "{}: not a .pt2 file of torch.export.save{}", file_, hint);
  }
  if (const std::string version = text_member("archive_version"); version != "0") {
    fail(ErrorCode::kUnsupported, "{}: version \"{}\" of the .pt2 container; this program knows 0", file_,
         version);
  }
  if (const std::string order = text_member("byteorder"); order != "little") {
    fail(order == "big" ? ErrorCode::kUnsupported : ErrorCode::kCorruptFile, "{}: byte order \"{}\"", file_,
         order);
  }
}

void Pt2Archive::find_model() {
  std::vector<std::string> names;
  const std::string prefix = root_ + "models/";
  for (const ZipMember& member : zip_.members()) {
    if (!member.name.starts_with(prefix) || !member.name.ends_with(".json")) continue;
    names.push_back(member.name.substr(prefix.size(), member.name.size() - prefix.size() - 5));
  }
  if (names.empty()) {
    fail(ErrorCode::kUnsupported,
         "{}: holds no exported program (models/*.json); compiled packages cannot be read", file_);
  }
  if (names.size() > 1) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    fail(ErrorCode::kUnsupported, "{}: holds {} models ({}); only files with one can be read", file_,
         names.size(), list);
  }
  model_name_ = names[0];
}

const ZipMember* Pt2Archive::try_member(std::string_view path) const {
  const ZipMember* member = zip_.try_member(root_ + std::string(path));
  if (member && verify_) zip_.verify_crc(*member);
  return member;
}

const ZipMember& Pt2Archive::member(std::string_view path) const {
  if (const ZipMember* member = try_member(path)) return *member;
  fail(ErrorCode::kCorruptFile, "{}: member {}{} is missing", file_, root_, path);
}

std::string Pt2Archive::place(std::string_view path) const {
  return fmt::format("{}: {}", file_, path);
}

std::string Pt2Archive::text_member(std::string_view path) const {
  const std::string_view text = trimmed(text_of(member(path)));
  if (text.size() > 64) fail(ErrorCode::kCorruptFile, "{}: {} bytes are too many", place(path), text.size());
  return std::string(text);
}

nlohmann::json Pt2Archive::json_member(std::string_view path) const {
  return parse_json(text_of(member(path)), place(path));
}

TensorMap Pt2Archive::load_payloads(const Pt2Context& context, const std::string& folder,
                                    const std::string& config) const {
  if (try_member(folder + model_name_ + ".pt")) {
    fail(ErrorCode::kUnsupported, "{}: {}{}.pt is a pickle of an older torch; export the model again", file_,
         folder, model_name_);
  }
  const nlohmann::json document = json_member(folder + config);
  const JsonCursor root(document, place(folder + config) + ": $");
  require_known_keys(context, root, {"config"});
  const JsonCursor entries = root.at("config");
  PayloadStorages storages(*this, folder);
  TensorMap tensors;
  for (const std::string& name : entries.keys())
    tensors[name] = storages.load(context, entries.at(name), name);
  return tensors;
}

TensorMap Pt2Archive::load_weights(const Pt2Context& context) const {
  return load_payloads(context, "data/weights/", model_name_ + "_weights_config.json");
}

TensorMap Pt2Archive::load_constants(const Pt2Context& context) const {
  return load_payloads(context, "data/constants/", model_name_ + "_constants_config.json");
}

}  // namespace halftone
