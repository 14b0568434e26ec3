// Memory for tensors that ends at a page which nobody may touch: an access behind it is a fault at once.
#pragma once

namespace halftone::hostile {

/// Makes it the allocator of all CPU tensors from now on. Not to be undone.
void guard_tensor_memory();

}  // namespace halftone::hostile
