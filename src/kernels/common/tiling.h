// How a linear's rows and panels are cut into tasks for threads and caches; the same for every linear.
#pragma once

#include <algorithm>
#include <cstdint>

namespace halftone::kernels {

/// Task t covers row blocks [first_block(t), last_block(t)) and panels [first_panel(t), last_panel(t)).
class Tiling {
 public:
  /// `block_bytes`: packed bytes of one row block, `most_blocks`: what a task can hold at once. Every task
  /// but the last has a multiple of `unit` panels.
  Tiling(int64_t blocks, int64_t panels, int64_t block_bytes, int threads, int64_t most_blocks = INT64_MAX,
         int64_t unit = 1)
      : blocks_(blocks), panels_(panels) {
    blocks_per_task_ =
        std::clamp<int64_t>(kRowBytesPerTask / (block_bytes + 1), 4, std::max<int64_t>(blocks, 4));
    blocks_per_task_ = std::min(blocks_per_task_, most_blocks);
    const int64_t groups = (blocks + blocks_per_task_ - 1) / blocks_per_task_;
    const int64_t wanted =
        std::max<int64_t>(1, threads == 1 ? 1 : threads * kTasksPerThread / std::max<int64_t>(groups, 1));
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
  // Enough tasks that threads balance, few enough that handing them out costs nothing.
  static constexpr int64_t kTasksPerThread = 8;
  // Packed rows that a task walks through for each panel: they and the panel stay in a 512 KB second-level
  // cache.
  static constexpr int64_t kRowBytesPerTask = 192 * 1024;

  int64_t blocks_, panels_;
  int64_t blocks_per_task_, panels_per_task_, panel_tasks_, tasks_;
};

/// Below this many elements of activations, preparing them costs less than waking another thread.
inline constexpr int64_t kSerialPrepare = 32 * 1024;

}  // namespace halftone::kernels
