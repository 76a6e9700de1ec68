#include "client/mpi/window/elements.h"

#include <cstring>

#include "client/mpi/base/handle_table.h"

namespace ferry::mpi {

Failure FindElements(const Op& op, const Datatype& type, const Datatype** elements) {
  if (!op.IsPredefined()) {
    return {MPI_ERR_OP, "the operation is a program's own: only predefined ones are for windows"};
  }
  const BasicType* const basic = type.basic();
  *elements = type.IsPredefined()                            ? &type
              : basic == nullptr || basic->handle == nullptr ? nullptr
                                                             : datatypes.Find(basic->handle);
  if (*elements == nullptr) {
    return {MPI_ERR_TYPE,
            "the target's datatype is not made of one predefined datatype, whose "
            "elements the operation could take"};
  }
  return op.kind() == OpKind::kReplace || op.kind() == OpKind::kNoOp ? Failure{}
                                                                     : op.Check(**elements);
}

void CombineElements(const Op& op, const Datatype& type, const std::byte* data, std::byte* target,
                     int64_t bytes) {
  if (op.kind() == OpKind::kReplace) {
    std::memcpy(target, data, static_cast<size_t>(bytes));
  } else if (op.kind() != OpKind::kNoOp) {
    // The target's elements are the left operands (MPI 5.0, section 12.3.4).
    op.Combine(target, data, target, bytes / type.size_bytes(), type);
  }
}

}  // namespace ferry::mpi
