// kill -9 while a checkpoint is saved: whatever the moment, the file is the old model or the new one.
#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>
#include <random>

#include "checkpoint/test_support.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;

/// Seen by both processes.
struct Progress {
  std::atomic<int64_t> started{0};  ///< the last model whose saving began
  std::atomic<int64_t> done{0};     ///< the last one whose saving returned
};

constexpr int64_t kElements = 3 << 19;  // 6 MiB: two chunks

/// Filled by hand: ATen's threads do not survive a fork.
void fill(const at::Tensor& tensor, int64_t generation) {
  std::fill_n(tensor.mutable_data_ptr<float>(), kElements, static_cast<float>(generation));
}

/// The model of a generation, or -1 if the tensor is a mixture.
int64_t generation_of(const at::Tensor& tensor) {
  const float* data = tensor.const_data_ptr<float>();
  for (int64_t i = 0; i < kElements; ++i) {
    if (data[i] != data[0]) return -1;
  }
  return static_cast<int64_t>(data[0]);
}

[[noreturn]] void save_for_ever(const GraphModule& module, const std::string& path, int64_t last,
                                Progress& progress) {
  try {
    while (true) {
      ++last;
      fill(module.tensor("large"), last);
      progress.started = last;
      save_checkpoint(module, path);
      progress.done = last;
    }
  } catch (...) {
    _exit(1);
  }
}

class CheckpointCrash : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    at::set_num_threads(1);
    void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    progress_ = new (memory) Progress;
    module_ = small_model();
    module_->put_tensor("large", at::empty({kElements}));
  }
  void TearDown() override {
    munmap(progress_, sizeof(Progress));
    CheckpointTest::TearDown();
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }
  double seconds_of_a_save() {
    const auto start = Clock::now();
    save_checkpoint(*module_, path());
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  Progress* progress_ = nullptr;
  std::shared_ptr<GraphModule> module_;
};

TEST_F(CheckpointCrash, KillingTheWriterLeavesTheOldModelOrTheNewOne) {
  const char* count = std::getenv("HALFTONE_KILLS");
  const char* chosen = std::getenv("HALFTONE_SEED");
  const int kills = count != nullptr ? std::atoi(count) : 50;
  const unsigned seed = chosen != nullptr ? static_cast<unsigned>(std::atoi(chosen)) : std::random_device()();
  std::cout << "HALFTONE_SEED=" << seed << ", " << kills << " kills\n";
  std::mt19937 random(seed);
  fill(module_->tensor("large"), 0);
  std::uniform_real_distribution<double> delay(0, 3 * seconds_of_a_save());
  int64_t present = 0;
  int in_the_middle = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    progress_->started = progress_->done = present;
    const pid_t child = fork();
    if (child == 0) save_for_ever(*module_, path(), present, *progress_);
    ASSERT_GT(child, 0);
    usleep(static_cast<useconds_t>(delay(random) * 1e6));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the save failed";

    const auto loaded = load_checkpoint(path(), {.map = false});
    present = generation_of(loaded->tensor("large"));
    ASSERT_TRUE(present == progress_->done || present == progress_->started)
        << present << " is neither " << progress_->done << " nor " << progress_->started;
    ASSERT_THAT(verify_checkpoint(path()).findings, ::testing::IsEmpty());
    ASSERT_LE(files(), 2u) << "temporary files pile up";
    in_the_middle += files() == 2;
  }
  EXPECT_GT(in_the_middle, 0) << "no kill hit a save";
  save_checkpoint(*module_, path());
  EXPECT_EQ(files(), 1u) << "the last victim's file is left";
}

}  // namespace
}  // namespace halftone
