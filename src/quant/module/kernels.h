// The kernels of quantized tensors, for their registration. Arguments are those of the aten operators.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>

#include <optional>
#include <vector>

namespace halftone::weight_kernels {

using at::Tensor;
using OptionalDtype = std::optional<c10::ScalarType>;
using OptionalFormat = std::optional<c10::MemoryFormat>;

// Products: linear_kernels.cpp.
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const c10::Scalar& beta,
             const c10::Scalar& alpha);
Tensor mm(const Tensor& self, const Tensor& mat2);
Tensor matmul(const Tensor& self, const Tensor& other);
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool scale_grad_by_freq,
                 bool sparse);

// Views: view_kernels.cpp.
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor transpose_all(const Tensor& self);
Tensor permute(const Tensor& self, c10::IntArrayRef dims);
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step);
Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length);
std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim);
std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim);
std::vector<Tensor> split_with_sizes(const Tensor& self, c10::IntArrayRef sizes, int64_t dim);

// Copies and conversions: copy_kernels.cpp.
Tensor detach(const Tensor& self);
Tensor alias(const Tensor& self);
Tensor clone(const Tensor& self, OptionalFormat format);
Tensor dequantize(const Tensor& self);
Tensor to_dtype(const Tensor& self, c10::ScalarType dtype, bool non_blocking, bool copy,
                OptionalFormat format);
Tensor to_device(const Tensor& self, c10::Device device, c10::ScalarType dtype, bool non_blocking, bool copy,
                 OptionalFormat format);
Tensor to_dtype_layout(const Tensor& self, OptionalDtype dtype, std::optional<c10::Layout> layout,
                       std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
                       bool copy, OptionalFormat format);
Tensor to_copy(const Tensor& self, OptionalDtype dtype, std::optional<c10::Layout> layout,
               std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
               OptionalFormat format);
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy, OptionalFormat format);
Tensor type_as(const Tensor& self, const Tensor& other);
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from);

// Whatever the operator: dispatch.cpp.
/// For operators that look at sizes, strides and dtype only: the operator itself, on an uninitialised tensor
/// of the same.
void on_stand_in(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
/// Raises the error that names layer, operator and config.
void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace halftone::weight_kernels
