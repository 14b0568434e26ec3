// The stack machine that a pickle is a program for, reduced to what torch.save emits at protocol 2.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "archive/pickle/pickle_torch.h"

namespace halftone::pickle {

class Machine {
 public:
  /// `where` is the file and member for messages. All arguments must outlive the machine.
  Machine(std::span<const std::byte> stream, std::string_view where, Heap& heap, TorchObjects& objects)
      : stream_(stream), where_(where), heap_(heap), objects_(objects) {}

  /// Runs to STOP and returns the one object left. Errors: "<where>: byte <position of the opcode>: …".
  NodeId run();

 private:
  bool step();  // false after STOP
  void step_scalar(uint8_t opcode);
  void step_container(uint8_t opcode);
  void step_object(uint8_t opcode);

  std::span<const std::byte> take(size_t count);
  template <typename T>
  T take_unsigned();
  std::string_view take_line();
  void push_integer_bytes(size_t count);
  void push_text();
  void push_global();

  void push(NodeId id) { stack_.push_back(id); }
  NodeId pop();
  NodeId top() const;
  std::vector<NodeId> pop_to_mark();
  void push_tuple(size_t count);
  void append(std::vector<NodeId> items);
  void set_items(const std::vector<NodeId>& items);
  void put(uint32_t key);
  void get(uint32_t key);

  std::span<const std::byte> stream_;
  std::string_view where_;
  Heap& heap_;
  TorchObjects& objects_;
  size_t position_ = 0;
  std::vector<NodeId> stack_;
  std::vector<size_t> marks_;  // stack heights; nothing below the last one may be popped
  std::unordered_map<uint32_t, NodeId> memo_;
};

}  // namespace halftone::pickle
