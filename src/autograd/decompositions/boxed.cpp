#include "autograd/decompositions/boxed.h"

namespace halftone {

const c10::OperatorHandle& any_operator() {
  static const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow("aten::alias", "");
  return handle;
}

}  // namespace halftone
