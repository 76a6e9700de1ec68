// Common parts of the constructors of derived datatypes: checks of arguments with messages that
// name them, and the steps from a shape to a datatype.
//
// For this folder. Calling thread: one at a time for a Maker. Blocks: never.
#pragma once

#include <memory>
#include <string_view>

#include "client/mpi/datatype/constructors.h"

namespace ferry::mpi {

// MPI_ERR_COUNT or MPI_ERR_ARG.
Failure CheckNotNegative(int error_class, std::string_view argument, int64_t value);
// Names the first one: "array_of_blocklengths[3] is negative: -1".
Failure CheckNoneNegative(std::string_view array, const Counts& values);
Failure OutOfRange(std::string_view array, size_t index, int64_t value, std::string_view range);

class Maker {
 public:
  Maker(int combiner, CountForm form) : made_(std::make_unique<Datatype::Made>()) {
    made_->contents.combiner = combiner;
    made_->contents.large = form == CountForm::kLarge;
  }

  ShapeBuilder& builder() { return builder_; }

  // Arguments in the order in which MPI_Type_get_contents gives them. Counts are integers or large
  // counts, displacements addresses or large counts, by the form.
  void AddInteger(int64_t value) { made_->contents.integers.push_back(value); }
  void AddCount(int64_t value) { counts().push_back(value); }
  void AddCounts(Counts values) { Append(counts(), std::move(values)); }
  void AddDisplacement(int64_t value) { displacements().push_back(value); }
  void AddDisplacements(Counts values) { Append(displacements(), std::move(values)); }
  void AddIntegers(Counts values) { Append(made_->contents.integers, std::move(values)); }
  void AddType(Datatype& type) { made_->contents.types.push_back(Ref<Datatype>::Share(&type)); }

  // Reserves room for so many.
  void ReserveTypes(size_t types) {
    made_->contents.types.reserve(types);
    made_->parts.reserve(types);
  }

  // `count` copies one extent apart.
  Shape Block(const Datatype& type, int64_t count) {
    return builder_.Repeat(type.shape(), count, type.extent());
  }

  void AddPart(const Datatype& type, int64_t repeat) {
    if (repeat > 0 && type.signature().elements > 0) {
      made_->parts.push_back({repeat, &type});
    }
  }
  void set_committed() { made_->committed = true; }

  // The datatype, or why the shape is none.
  MadeDatatype Finish(Shape shape);
  // The same for shapes of one old type, whose parts follow from the size.
  MadeDatatype FinishOf(Shape shape, Datatype& old);

 private:
  Counts& counts() {
    return made_->contents.large ? made_->contents.large_counts : made_->contents.integers;
  }
  Counts& displacements() {
    return made_->contents.large ? made_->contents.large_counts : made_->contents.addresses;
  }
  // A long array with room in front of it is cheaper moved a little than copied (CountsOf).
  static void Append(Counts& to, Counts values) {
    if (to.size() < values.size() && to.size() + values.size() <= values.capacity()) {
      values.insert(values.begin(), to.begin(), to.end());
      to = std::move(values);
    } else {
      to.insert(to.end(), values.begin(), values.end());
    }
  }

  std::unique_ptr<Datatype::Made> made_;
  ShapeBuilder builder_{made_->store};
};

}  // namespace ferry::mpi
