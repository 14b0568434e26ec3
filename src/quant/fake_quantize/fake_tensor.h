// Prepared weights as tensors: ordinary float tensors with a further dispatch key above autograd. The kernels
// there (fake_tensor.cpp) give products the fake-quantized weight and everything else the weight itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "halftone/quant/qat.h"
#include "quant/fake_quantize/fake_quantizer.h"

namespace halftone {

/// Gives `weight` the key, in place: its storage, its gradient and every handle on it stay. [n, k], dense, on
/// the CPU.
void attach_fake_quantizer(at::Tensor& weight, std::shared_ptr<FakeQuantizer> quantizer);
/// Takes the key away again; nothing happens to a plain tensor.
void detach_fake_quantizer(at::Tensor& weight);
/// nullptr for plain and undefined tensors.
std::shared_ptr<FakeQuantizer> try_fake_quantizer(const at::Tensor& weight);

}  // namespace halftone
