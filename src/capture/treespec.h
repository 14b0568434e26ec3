// torch's serialized pytree specs (how arguments and results are nested) as TreeSpecs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/graph/tree.h"

namespace halftone {

/// Serialized type name → field names, from the file's treespec_namedtuple_fields.
using NamedTupleFields = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Reads '[1, {"type": …, "context": …, "children_spec": […]}]'. Knows tuple, list, dict, OrderedDict,
/// defaultdict, deque and named tuples; other registered types become dicts where their context gives the
/// keys. kCorruptFile, and kUnsupported naming the type; `place` stands before the message.
TreeSpec parse_treespec(std::string_view text, const std::string& place, const NamedTupleFields& fields);

/// Splits an in_spec, which is a tuple of the positional arguments' tuple and the keyword arguments' dict.
CallSpec make_call_spec(TreeSpec in_spec, TreeSpec out_spec, const std::string& place);

}  // namespace halftone
