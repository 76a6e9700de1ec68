#include "mpi/rma/elements.h"

#include <cstring>

#include "mpi/base/handle_table.h"

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

std::optional<shm::Accumulation> AccumulationOf(const Op& op, const BasicType& basic) {
  return basic.IsPair() ? shm::Accumulation::Of(op.kind(), basic.kind, basic.index_kind)
                        : shm::Accumulation::Of(op.kind(), basic.kind);
}

namespace {

// Calls copy(packed place, place in memory, bytes) for each number of pairs with gaps.
template <typename Copy>
void ForEachNumber(const BasicType& pair, size_t laid_out_bytes, Copy&& copy) {
  const auto value_bytes = static_cast<size_t>(pair.value->size_bytes);
  const auto pair_bytes = static_cast<size_t>(pair.size_bytes);
  const auto index = static_cast<size_t>(pair.index_offset);
  const auto extent = static_cast<size_t>(pair.extent_bytes);
  for (size_t packed = 0, there = 0; there < laid_out_bytes;
       packed += pair_bytes, there += extent) {
    copy(packed, there, value_bytes);
    copy(packed + value_bytes, there + index, pair_bytes - value_bytes);
  }
}

}  // namespace

void LayOutPairs(const BasicType& pair, const std::byte* packed, std::vector<std::byte>* laid_out) {
  ForEachNumber(pair, laid_out->size(), [&](size_t from, size_t to, size_t bytes) {
    std::memcpy(laid_out->data() + to, packed + from, bytes);
  });
}

void PackPairs(const BasicType& pair, const std::vector<std::byte>& laid_out, std::byte* packed) {
  ForEachNumber(pair, laid_out.size(), [&](size_t to, size_t from, size_t bytes) {
    std::memcpy(packed + to, laid_out.data() + from, bytes);
  });
}

bool IsComparable(const BasicType& type) {
  switch (type.type_class) {
    case TypeClass::kCInteger:
    case TypeClass::kFortranInteger:
    case TypeClass::kLogical:
    case TypeClass::kMultiLanguage:
    case TypeClass::kByte:
      return true;
    default:
      return false;
  }
}

}  // namespace ferry::mpi
