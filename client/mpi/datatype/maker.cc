#include "client/mpi/datatype/maker.h"

#include <string>

namespace ferry::mpi {

Failure CheckNotNegative(int error_class, std::string_view argument, int64_t value) {
  if (value >= 0) {
    return {};
  }
  return {error_class, std::string(argument) + " is negative: " + std::to_string(value)};
}

Failure CheckNoneNegative(std::string_view array, const Counts& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) {
      return CheckNotNegative(MPI_ERR_ARG, std::string(array) + "[" + std::to_string(i) + "]",
                              values[i]);
    }
  }
  return {};
}

Failure OutOfRange(std::string_view array, size_t index, int64_t value, std::string_view range) {
  return {MPI_ERR_ARG, std::string(array) + "[" + std::to_string(index) + "] is " +
                           std::to_string(value) + ", not " + std::string(range)};
}

MadeDatatype Maker::Finish(Shape shape) {
  if (builder_.overflowed()) {
    return Failure{MPI_ERR_ARG, "the datatype's size, extent or displacements exceed 63 bits"};
  }
  for (const Ref<Datatype>& type : made_->contents.types) {
    if (type->depth() >= kMaxDatatypeDepth) {
      return Failure{MPI_ERR_ARG, "datatypes are nested more than " +
                                      std::to_string(kMaxDatatypeDepth) + " deep"};
    }
  }
  for (const Datatype::Part& part : made_->parts) {
    made_->signature =
        JoinSignatures(made_->signature, RepeatSignature(part.type->signature(), part.repeat));
  }
  made_->shape = std::move(shape);
  return MakeRef<Datatype>(std::move(made_));
}

MadeDatatype Maker::FinishOf(Shape shape, Datatype& old) {
  AddType(old);
  if (old.size_bytes() > 0) {
    AddPart(old, shape.size_bytes() / old.size_bytes());
  }
  return Finish(std::move(shape));
}

}  // namespace ferry::mpi
