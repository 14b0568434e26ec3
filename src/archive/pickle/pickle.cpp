#include "archive/pickle/pickle.h"

#include "archive/pickle/pickle_machine.h"
#include "base/errors.h"

namespace halftone {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";

/// `<root>/data.pkl` with one folder level, as the writer lays it out; exactly one.
const ZipMember& find_pickle(const ZipReader& container) {
  const ZipMember* found = nullptr;
  for (const ZipMember& member : container.members()) {
    const size_t slash = member.name.find('/');
    if (slash == std::string::npos || std::string_view(member.name).substr(slash) != kPickleName) continue;
    if (found != nullptr) {
      fail(ErrorCode::kCorruptFile, "{}: two pickles, {} and {}", container.file(), found->name, member.name);
    }
    found = &member;
  }
  if (found == nullptr) fail(ErrorCode::kCorruptFile, "{}: no member <root>/data.pkl", container.file());
  return *found;
}

void check_byte_order(const ZipReader& container, const std::string& root) {
  const ZipMember* member = container.try_member(root + "byteorder");
  if (member == nullptr) return;  // written since torch 2.1; older files are little-endian
  const std::string_view order(reinterpret_cast<const char*>(member->bytes.data()), member->bytes.size());
  if (order == "big")
    fail(ErrorCode::kUnsupported, "{}: {}: big-endian data", container.file(), member->name);
  if (order != "little")
    fail(ErrorCode::kCorruptFile, "{}: {}: unknown byte order", container.file(), member->name);
}

}  // namespace

PickleValue read_torch_pickle(const ZipReader& container) {
  const ZipMember& member = find_pickle(container);
  const std::string root = member.name.substr(0, member.name.size() - kPickleName.size() + 1);
  check_byte_order(container, root);
  container.verify_crc(member);

  const std::string where = container.file() + ": " + member.name;
  pickle::Heap heap;
  pickle::TorchObjects objects(container, root, heap);
  const pickle::NodeId top = pickle::Machine(member.bytes, where, heap, objects).run();
  try {
    return pickle::to_value(heap, top);
  } catch (const Error& error) {
    throw error.with_context(where);
  }
}

}  // namespace halftone
