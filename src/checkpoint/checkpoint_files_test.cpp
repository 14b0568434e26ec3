// .ht files and the operating system: full disks, folders without rights, files that are mapped elsewhere;
// and damage.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "checkpoint/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

class CheckpointFiles : public CheckpointTest {};

size_t files_in(const std::filesystem::path& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST_F(CheckpointFiles, AReaderKeepsTheOldFileWhileANewOneIsWritten) {
  save_checkpoint(*small_model(), path());
  const auto old_module = load_checkpoint(path());
  const auto changed = small_model();
  changed->set_tensor("fc.bias", at::full({3}, 100.));
  save_checkpoint(*changed, path());
  expect_same(old_module->tensor("fc.bias"), at::arange(3, at::kFloat), "old");
  expect_same(load_checkpoint(path())->tensor("fc.bias"), at::full({3}, 100.), "new");
  EXPECT_EQ(files_in(folder_), 1u) << "no temporary file stays";
}

/// Runs `prepare` and a save in a child, because limits and rights belong to the process. 0: the save failed
/// with kIo.
int save_in_child(const GraphModule& module, const std::string& path, void (*prepare)()) {
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    try {
      save_checkpoint(module, path);
    } catch (const Error& error) {
      _exit(error.code() == ErrorCode::kIo ? 0 : 2);
    }
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CheckpointFiles, AFullDiskIsAnErrorAndTheOldFileStays) {
  save_checkpoint(*small_model(), path());
  const std::string before = file_text(path());
  const auto large = small_model();
  large->put_tensor("large", at::zeros({1 << 16}));
  EXPECT_EQ(save_in_child(*large, path(),
                          [] {
                            std::signal(SIGXFSZ, SIG_IGN);
                            const rlimit limit{16384, 16384};
                            setrlimit(RLIMIT_FSIZE, &limit);
                          }),
            0);
  EXPECT_EQ(file_text(path()), before);
  EXPECT_EQ(files_in(folder_), 1u);
}

TEST_F(CheckpointFiles, FoldersThatCannotBeWrittenTo) {
  EXPECT_THAT(message_of(ErrorCode::kNotFound, [&] { save_checkpoint(*small_model(), path("none/a.ht")); }),
              HasSubstr("none/a.ht"));
  using std::filesystem::perms;
  std::filesystem::permissions(
      folder_, perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  constexpr uid_t kNobody = 65534;
  EXPECT_EQ(save_in_child(*small_model(), path(),
                          [] {
                            if (geteuid() == 0 && seteuid(kNobody) != 0)
                              _exit(3);  // root may write everywhere
                          }),
            0);
  std::filesystem::permissions(folder_, perms::owner_all);
  EXPECT_EQ(files_in(folder_), 0u);
}

/// Whether these bytes are taken for a sound file. Nothing but an Error may come out.
struct Taken {
  bool loads = true;
  bool sound = true;
};

Taken try_bytes(const std::string& path, const std::string& bytes) {
  write_text(path, bytes);
  Taken taken;
  try {
    load_checkpoint(path, {.map = false});
  } catch (const Error&) {
    taken.loads = false;
  }
  try {
    taken.sound = verify_checkpoint(path).findings.empty();
  } catch (const Error&) {
    taken.sound = false;
  }
  return taken;
}

/// Neither by loading nor by verifying.
bool is_detected(const std::string& path, const std::string& bytes) {
  const Taken taken = try_bytes(path, bytes);
  return !taken.loads && !taken.sound;
}

/// Every n-th damage: all of them take minutes and run in `make test-long`.
size_t step() {
  const char* all = std::getenv("HALFTONE_ALL_DAMAGE");
  return all != nullptr ? 1 : 97;
}

TEST_F(CheckpointFiles, EverySingleBitFlipIsDetected) {
  save_checkpoint(*small_model(), path("good.ht"));
  const std::string good = file_text(path("good.ht"));
  ASSERT_TRUE(try_bytes(path(), good).loads && try_bytes(path(), good).sound);
  for (size_t bit = 0; bit < good.size() * 8; bit += step()) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const Taken taken = try_bytes(path(), bad);
    ASSERT_FALSE(taken.sound) << "byte " << bit / 8 << ", bit " << bit % 8;
    // The last digest says the same of the file once more; loading compares those of the chunks.
    const bool is_content = bit / 8 < good.size() - ht::kDigestSize;
    ASSERT_EQ(taken.loads, !is_content) << "byte " << bit / 8 << ", bit " << bit % 8;
  }
}

TEST_F(CheckpointFiles, EveryTruncationIsDetected) {
  save_checkpoint(*small_model(), path("good.ht"));
  const std::string good = file_text(path("good.ht"));
  for (size_t size = 0; size < good.size(); size += step() / 8 + 1)
    ASSERT_TRUE(is_detected(path(), good.substr(0, size))) << size << " bytes";
  ASSERT_TRUE(is_detected(path(), good.substr(0, good.size() - 1)));
  ASSERT_TRUE(is_detected(path(), good + '\0'));
}

}  // namespace
}  // namespace halftone
