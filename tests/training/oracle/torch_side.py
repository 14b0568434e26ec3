"""What torch._functorch.aot_autograd makes of a module: operators of both graphs, bytes saved between them."""
import copy

import torch
from functorch.compile import aot_module
from torch._functorch import partitioners
from torch.utils import _pytree as pytree

from partition_oracle import Oracle, fx_operators

PARTITIONERS = {"default": partitioners.default_partition, "min_cut": partitioners.min_cut_rematerialization_partition}


class Recorder:
    """Compiler and partitioner of one compilation."""

    def __init__(self, partitioner):
        self.partitioner = PARTITIONERS[partitioner]
        self.report = {}

    def compiler(self, part):
        def compile_graph(module, _):
            self.report[part] = fx_operators(module)
            self.report[part + "_text"] = module.print_readable(print_output=False)
            return module.forward

        return compile_graph

    def partition(self, joint, joint_inputs, *, num_fwd_outputs, **options):
        found = {"joint": torch.fx.GraphModule(joint, copy.deepcopy(joint.graph)), "results": num_fwd_outputs}
        parts = self.partitioner(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **options)
        outputs = next(node for node in parts[0].graph.nodes if node.op == "output").args[0]
        self.report["saved_bytes"] = Oracle(found).bytes_by_storage([node.name for node in outputs[num_fwd_outputs:]])
        return parts


def report_on(module, inputs, table, partitioner):
    recorder = Recorder(partitioner)
    module = copy.deepcopy(module)
    compiled = aot_module(module, fw_compiler=recorder.compiler("forward"), bw_compiler=recorder.compiler("backward"),
                          partition_fn=recorder.partition, decompositions=table)
    results = [result for result in pytree.tree_leaves(compiled(*inputs)) if isinstance(result, torch.Tensor) and result.grad_fn]
    torch.autograd.backward(results, [torch.ones_like(result) for result in results])
    return recorder.report
