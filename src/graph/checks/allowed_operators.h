// Which operators graphs from files may call. A file may come from anyone: everything that the dispatcher
// knows would be too much, since that includes operators that read files, print, and make tensors of raw
// memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph.h"

namespace c10 {
struct OperatorName;
}

namespace halftone {

/// What allowed_operators.inc holds: "aten::add.Tensor", sorted.
std::span<const std::string_view> allowed_operator_table();

/// Why a graph from a file may not call it ("aten::from_file reads and writes files: refused in files");
/// empty if it may: built-ins, the table's, and what the caller allowed. Thread-safe, as all here.
std::string why_refused_in_files(std::string_view target);

/// Lets files call these from now on: what a library that the caller loaded registered.
void allow_operators(const std::vector<c10::OperatorName>& names);

/// A node that cannot be run, for the one error that lists all of them.
struct UnsupportedNode {
  std::string name;
  std::string target;
  std::string layer;
  std::string reason;
};
/// kUnsupported with the nodes, if there are any; `file` stands before them.
void throw_if_unsupported(std::string_view file, std::span<const UnsupportedNode> nodes);

/// kUnsupported if a node, in subgraphs too, is refused in files: its operator, or an operand that asks
/// for a device or a layout that Halftone does not run on.
void require_allowed(const Graph& graph, std::string_view file);

/// Memory without content (aten::empty and its like) would show what this process had there: such tensors are
/// filled with zeros in graphs from files, subgraphs too.
void fill_empty_tensors(Graph& graph);

}  // namespace halftone
