#include "quant/static_int8/operators.h"

namespace halftone::static_int8 {

void register_operators() {
  link_product_operators();
  link_elementwise_operators();
  link_images_operators();
  link_cat_operators();
}

}  // namespace halftone::static_int8
