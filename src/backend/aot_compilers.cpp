// Backends that give forward and backward as graphs of their own to another compiler: AotAutograd by name.
#include "backend/builtin_compilers.h"
#include "halftone/autograd/aot_autograd.h"

namespace halftone {
namespace {

PartitionedGraphs min_cut(const JointGraph& joint) {
  return min_cut_rematerialization_partition(joint);
}

NamedCompiler aot_eager() {
  AotOptions options;
  options.name = "aot_eager";
  options.fw_compiler = nop_compiler();
  return {{options.name, {}, "forward and backward as graphs, run operator by operator"},
          AotAutograd(options)};
}

NamedCompiler aot_eager_decomp_partition() {
  AotOptions options;
  options.name = "aot_eager_decomp_partition";
  options.fw_compiler = nop_compiler();
  options.partition_fn = min_cut;
  options.decompositions = default_decompositions;
  return {{options.name, {"debug"}, "aot_eager with decompositions and the min-cut partitioner"},
          AotAutograd(options)};
}

NamedCompiler aot_ts() {
  AotOptions options = mem_efficient_fusion_options(/*use_decomps=*/true);
  options.name = "aot_ts";
  return {{options.name, {"legacy"}, "forward and backward as TorchScript; the min-cut partitioner"},
          AotAutograd(options)};
}

}  // namespace

// Declared beside AotAutograd but defined here: src/autograd knows no compiler by name.
AotOptions mem_efficient_fusion_options(bool use_decomps) {
  AotOptions options;
  options.fw_compiler = ts_compiler();
  options.bw_compiler = ts_compiler();
  options.partition_fn = min_cut;
  if (use_decomps) options.decompositions = default_decompositions;
  return options;
}

std::vector<NamedCompiler> aot_compilers() {
  return {aot_eager(), aot_eager_decomp_partition(), aot_ts()};
}

}  // namespace halftone
