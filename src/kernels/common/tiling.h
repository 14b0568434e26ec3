// Cuts a linear's rows and panels into tasks for threads and caches; the same for every linear.
#pragma once

#include <algorithm>
#include <cstdint>

namespace halftone::kernels {

/// Packed rows that a task walks through for each panel: they and the panel stay in a 512 KB second-level
/// cache.
inline constexpr int64_t kRowBytesPerTask = 192 * 1024;

/// Task t covers row blocks [first_block(t), last_block(t)) and panels [first_panel(t), last_panel(t)).
class Tiling {
 public:
  /// `block_bytes`: packed bytes of one row block, `max_blocks`: what a task can hold at once. Every task
  /// but the last has a multiple of `unit` panels.
  Tiling(int64_t blocks, int64_t panels, int64_t block_bytes, int threads, int64_t max_blocks = INT64_MAX,
         int64_t unit = 1)
      : blocks_(blocks), panels_(panels) {
    blocks_per_task_ =
        std::clamp<int64_t>(kRowBytesPerTask / (block_bytes + 1), 4, std::max<int64_t>(blocks, 4));
    blocks_per_task_ = std::min(blocks_per_task_, max_blocks);
    const int64_t groups = (blocks + blocks_per_task_ - 1) / blocks_per_task_;
    blocks_per_task_ = groups == 0 ? 1 : (blocks + groups - 1) / groups;  // no small one at the end
    const int64_t wanted = panel_parts(std::max<int64_t>(groups, 1), threads);
    panels_per_task_ = std::max<int64_t>(1, panels / wanted / unit) * unit;
    panel_tasks_ = (panels + panels_per_task_ - 1) / panels_per_task_;
    tasks_ = groups * panel_tasks_;
  }
  int64_t tasks() const { return tasks_; }
  int64_t first_block(int64_t t) const { return t / panel_tasks_ * blocks_per_task_; }
  int64_t last_block(int64_t t) const { return std::min(blocks_, first_block(t) + blocks_per_task_); }
  int64_t first_panel(int64_t t) const { return t % panel_tasks_ * panels_per_task_; }
  int64_t last_panel(int64_t t) const { return std::min(panels_, first_panel(t) + panels_per_task_); }

 private:
  // As many for each group of blocks that the threads get the same number of tasks.
  static int64_t panel_parts(int64_t groups, int threads) {
    if (threads == 1) return 1;
    int64_t parts = (threads * kTasksPerThread + groups - 1) / groups;
    while (groups * parts % threads != 0) ++parts;
    return parts;
  }

  // Enough tasks that threads balance, few enough that each goes on long enough where its weights are: a task
  // begins with what no cache has (Zen 4, two threads, 32x1536x384 in int8: 339 G multiply-adds/s with 8
  // tasks a thread, 369 with 2; fp32 16x1024x1024: 75 and 85).
  static constexpr int64_t kTasksPerThread = 2;

  int64_t blocks_, panels_;
  int64_t blocks_per_task_, panels_per_task_, panel_tasks_, tasks_;
};

/// Where there are rows enough, a task takes a group of row blocks through everything, from preparing them to
/// their finished output: no thread waits for another in between, and what a step leaves is in the cache for
/// the next. Each task then reads all panels, so a group should not be small.
class RowGroups {
 public:
  /// The most blocks of a group.
  static int64_t most(int64_t block_rows, int64_t block_bytes) {
    return std::clamp<int64_t>(kRowBytesPerTask / (block_bytes + 1), kLeast,
                               std::max(kLeast, 48 / block_rows));
  }

  RowGroups(int64_t blocks, int64_t max_blocks, int threads) : blocks_(blocks) {
    if (threads > 1 && blocks < threads * kPerThread * kLeast) return;
    const int64_t groups = (blocks + max_blocks - 1) / max_blocks;
    const int64_t parts = threads == 1 ? 1 : threads * kPerThread;
    count_ = threads == 1 ? groups : (std::max(groups, parts) + threads - 1) / threads * threads;
  }
  /// 0: too few blocks, cut by panels too.
  int64_t count() const { return count_; }
  /// Blocks [first(g), first(g + 1)) are group g.
  int64_t first(int64_t g) const { return blocks_ * g / count_; }

  /// Blocks of the largest group.
  int64_t largest() const { return count_ == 0 ? 0 : (blocks_ + count_ - 1) / count_; }

 private:
  static constexpr int64_t kLeast = 4;
  static constexpr int64_t kPerThread = 2;

  int64_t blocks_;
  int64_t count_ = 0;
};

/// Below this many elements of activations, preparing them costs less than waking another thread.
inline constexpr int64_t kSerialPrepare = 32 * 1024;

}  // namespace halftone::kernels
