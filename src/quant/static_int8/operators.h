// The operators on uint8 tensors, by name. Formulas: kernels/int8_conv/int8_conv.h, kernels/quantized_ops.
//
//   halftone::int8_conv, int8_static_linear        product with int8 weights, bias, residual, clamp
//                                                  (product_op.cpp)
//   halftone::int8_add, int8_mul, int8_lookup      element by element (elementwise_op.cpp)
//   halftone::int8_max_pool, int8_avg_pool, int8_adaptive_avg_pool, int8_interpolate
//                                                  on images (channels_last_op.cpp)
//   halftone::int8_cat                             parts of several scales (cat_op.cpp)
//
// Scales and zero points are arguments: x_scale, x_zero_point, out_scale, out_zero_point, and the range
// [out_min, out_max] of the result, into which relu and clamp are folded. x_max is a promise of the graph
// that x has no larger bytes (int8_conv: a product with 7 bits is faster); a broken promise gives wrong sums,
// nothing worse. Tensors of three and more dimensions come out channels last from products of images,
// pooling, interpolation and cat; the others keep the layout of their operand.
#pragma once

namespace halftone::static_int8 {

/// Makes sure that a program which links this component statically has them. Cheap.
void register_operators();

// One a file; empty functions that the linker must follow.
void link_product_operators();
void link_elementwise_operators();
void link_images_operators();
void link_cat_operators();

}  // namespace halftone::static_int8
