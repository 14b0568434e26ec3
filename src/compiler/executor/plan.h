// A graph made ready for inputs of one shape: where each value lies, and the steps in order.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpu/parallel_for.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/graph.h"

namespace halftone::compiler {

/// Memory that one or more values (views of each other) share.
struct Buffer {
  enum class Kind {
    kArena,     ///< in the instance's arena, at `offset`, from step `first` to step `last`
    kInput,     ///< a tensor of the caller or of the session: input `index` of the run
    kConstant,  ///< a weight; the plan keeps `constant`
    kOutput,    ///< a tensor made for each run, given to the caller
    kDynamic,   ///< whatever tensor ATen returned in this run
  };
  Kind kind = Kind::kArena;
  c10::ScalarType dtype = c10::ScalarType::Byte;
  size_t bytes = 0;
  size_t offset = 0;
  int first = 0;
  int last = -1;
  size_t index = 0;
  at::Tensor constant;
  bool folded = false;   ///< of kConstant: made while planning; a result must not hand it out
  bool scratch = false;  ///< of kArena: memory that kernels lay out themselves, aligned to 64
};

/// A place in a buffer.
struct Operand {
  int buffer = -1;
  int64_t byte_offset = 0;
  bool valid() const { return buffer >= 0; }
};

/// A tensor of the plan: its buffer, and a tensor on the meta device with sizes, strides and the offset from
/// the buffer's start.
struct Slot {
  int buffer = -1;
  at::Tensor meta;

  Operand operand() const {
    return {buffer, meta.storage_offset() * static_cast<int64_t>(meta.element_size())};
  }
  c10::ScalarType dtype() const { return meta.scalar_type(); }
  c10::IntArrayRef sizes() const { return meta.sizes(); }
  c10::IntArrayRef strides() const { return meta.strides(); }
  int64_t numel() const { return meta.numel(); }
};

/// What one run works on: an arena and the place of every buffer. Belongs to one run at a time, then to the
/// next.
struct Frame {
  std::vector<std::byte*> pointers;  ///< by buffer
  std::vector<c10::IValue>
      tensors;  ///< by buffer: of inputs, outputs and what ATen returned; made once for the others
  ParallelFor* parallel_for = nullptr;
  std::vector<at::DataPtr> memory;  ///< the arena; one for each buffer where memory is guarded

  template <typename T>
  T* at(const Operand& operand) const {
    return operand.valid() ? reinterpret_cast<T*>(pointers[operand.buffer] + operand.byte_offset) : nullptr;
  }
};

/// What a step cannot do without, for profiles.
struct Work {
  int64_t bytes = 0;       ///< of operands read and results written, each once
  int64_t operations = 0;  ///< multiplications and additions of a product of matrices; 0 for all else
  Arithmetic arithmetic = Arithmetic::kFloat;
};

/// One operation of a plan. Immutable; any number of runs may use it at once.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Frame& frame) const = 0;
  /// The kernel that runs, for reports; "aten" for what the dispatcher runs.
  virtual std::string kernel() const = 0;

  const Node* node = nullptr;  ///< for messages and profiles; kept alive by the compiled model
  Work work;
};

/// For empty tensors: kernels need not be asked.
class NothingStep final : public Step {
 public:
  void run(Frame&) const override {}
  std::string kernel() const override { return "nothing"; }
};

/// How a result of the graph reaches the caller.
struct ResultPlan {
  enum class Kind { kCopy, kViewOfTensor, kValue } kind = Kind::kValue;
  Slot slot;          ///< of the first two
  c10::IValue value;  ///< of kValue: a number, None, …
};

/// A buffer that is made for each run and given to the caller.
struct PlannedOutput {
  int buffer = -1;
  int result = -1;  ///< the result that is all of this buffer and nothing else is; -1: there is none
};

/// After this step the results that ATen returned in this run are not read any more.
struct Drop {
  int step = 0;
  int buffer = 0;
};

/// A run's memory, used by one run at a time.
using Instance = Frame;

/// Immutable but for the pool of instances.
class Plan {
 public:
  std::vector<Buffer> buffers;
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<ResultPlan> results;
  std::vector<int> inputs;  ///< buffers of kind kInput that something reads
  std::vector<PlannedOutput> outputs;
  std::vector<int> tensors_of_a_run;  ///< all buffers that hold a tensor only while a run lasts
  std::vector<Drop> drops;            ///< in the order of the steps
  std::vector<int> written_states;    ///< buffers of kind kInput, of the session, that steps write to
  size_t arena_bytes = 0;
  int threads = 1;                        ///< at most: scratch memory is made for so many
  std::vector<std::string> left_to_aten;  ///< "aten::sort in layer …: no native kernel"
  std::vector<std::string> choices;       ///< where several could compute a node: which one does, and why

  Plan() = default;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// An idle instance, or a new one. Neither call takes a lock.
  std::unique_ptr<Instance> take_instance() const;
  void give_back(std::unique_ptr<Instance> instance) const;

 private:
  static constexpr size_t kIdle = 16;
  void place_arena(Instance& instance) const;
  mutable std::array<std::atomic<Instance*>, kIdle> idle_{};
};

}  // namespace halftone::compiler
