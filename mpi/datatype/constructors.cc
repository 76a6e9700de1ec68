#include "mpi/datatype/constructors.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "common/counted.h"

namespace ferry::mpi {
namespace {

// ---- Checks of arguments, whose messages name them ----------------------------------------------

Failure CheckNotNegative(int error_class, std::string_view argument, int64_t value) {
  if (value >= 0) {
    return {};
  }
  return {error_class, std::string(argument) + " is negative: " + std::to_string(value)};
}

// Names the first one: "array_of_blocklengths[3] is negative: -1".
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

// ---- From a shape to a datatype -----------------------------------------------------------------

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

  // Returns the datatype, or why the shape is none.
  MadeDatatype Finish(Shape shape);
  // Returns the datatype of a shape of one old type, whose parts follow from the size.
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

// ---- Blocks -------------------------------------------------------------------------------------

// Returns true if any number of elements in a row are one run of bytes.
bool IsRun(const Datatype& type) { return type.IsDense(2) && !type.shape().marks; }

// Returns the shape of blocks of `length_of(i)` elements at `displacements[i] * unit` bytes.
template <typename LengthOf>
Shape JoinBlocks(Maker& maker, const Datatype& old, LengthOf&& length_of,
                 const Counts& displacements, int64_t unit) {
  ShapeBuilder& builder = maker.builder();
  ShapeJoiner joiner(builder);
  joiner.Reserve(displacements.size());
  if (IsRun(old)) {
    for (size_t i = 0; i < displacements.size(); ++i) {
      if (length_of(i) != 0) {
        joiner.AddRun(old.shape(), length_of(i), builder.Multiply(displacements[i], unit));
      }
    }
    return joiner.Join();
  }
  Shape block;
  int64_t length = 0;  // of `block`
  for (size_t i = 0; i < displacements.size(); ++i) {
    if (length_of(i) == 0) {
      continue;
    }
    // Neighbours of one length share one layout: they may turn out to be a loop.
    if (length_of(i) != length) {
      length = length_of(i);
      block = maker.Block(old, length);
    }
    joiner.Add(block, builder.Multiply(displacements[i], unit));
  }
  return joiner.Join();
}

// Returns the shape of blocks of one length, as JoinBlocks does.
Shape JoinEqualBlocks(Maker& maker, const Datatype& old, int64_t length,
                      const Counts& displacements, int64_t unit) {
  if (!IsRun(old)) {
    return JoinBlocks(
        maker, old, [length](size_t) { return length; }, displacements, unit);
  }
  ShapeJoiner joiner(maker.builder());
  joiner.Reserve(displacements.size());
  joiner.AddRuns(old.shape(), length, displacements, unit);
  return joiner.Join();
}

MadeDatatype MakeStrided(int combiner, CountForm form, int64_t count, int64_t blocklength,
                         int64_t stride, int64_t unit, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckNotNegative(MPI_ERR_COUNT, "count", count));
  FERRY_RETURN_FAILURE(CheckNotNegative(MPI_ERR_ARG, "blocklength", blocklength));
  Maker maker(combiner, form);
  maker.AddCount(count);
  maker.AddCount(blocklength);
  combiner == MPI_COMBINER_HVECTOR ? maker.AddDisplacement(stride) : maker.AddCount(stride);
  const int64_t step = count > 1 ? maker.builder().Multiply(stride, unit) : 0;
  return maker.FinishOf(maker.builder().Repeat(maker.Block(old, blocklength), count, step), old);
}

MadeDatatype MakeBlocks(int combiner, CountForm form, Counts blocklengths, Counts displacements,
                        int64_t unit, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckNoneNegative("array_of_blocklengths", blocklengths));
  Maker maker(combiner, form);
  const auto length_of = [&](size_t i) { return blocklengths[i]; };
  Shape shape = JoinBlocks(maker, old, length_of, displacements, unit);
  maker.AddCount(static_cast<int64_t>(blocklengths.size()));
  maker.AddCounts(std::move(blocklengths));
  combiner == MPI_COMBINER_HINDEXED ? maker.AddDisplacements(std::move(displacements))
                                    : maker.AddCounts(std::move(displacements));
  return maker.FinishOf(std::move(shape), old);
}

MadeDatatype MakeEqualBlocks(int combiner, CountForm form, int64_t blocklength,
                             Counts displacements, int64_t unit, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckNotNegative(MPI_ERR_ARG, "blocklength", blocklength));
  Maker maker(combiner, form);
  Shape shape = JoinEqualBlocks(maker, old, blocklength, displacements, unit);
  maker.AddCount(static_cast<int64_t>(displacements.size()));
  maker.AddCount(blocklength);
  combiner == MPI_COMBINER_HINDEXED_BLOCK ? maker.AddDisplacements(std::move(displacements))
                                          : maker.AddCounts(std::move(displacements));
  return maker.FinishOf(std::move(shape), old);
}

}  // namespace

MadeDatatype MakeContiguous(CountForm form, int64_t count, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckNotNegative(MPI_ERR_COUNT, "count", count));
  Maker maker(MPI_COMBINER_CONTIGUOUS, form);
  maker.AddCount(count);
  return maker.FinishOf(maker.Block(old, count), old);
}

MadeDatatype MakeVector(CountForm form, int64_t count, int64_t blocklength, int64_t stride,
                        Datatype& old) {
  return MakeStrided(MPI_COMBINER_VECTOR, form, count, blocklength, stride, old.extent(), old);
}

MadeDatatype MakeHvector(CountForm form, int64_t count, int64_t blocklength, int64_t stride_bytes,
                         Datatype& old) {
  return MakeStrided(MPI_COMBINER_HVECTOR, form, count, blocklength, stride_bytes, 1, old);
}

MadeDatatype MakeIndexed(CountForm form, Counts blocklengths, Counts displacements, Datatype& old) {
  return MakeBlocks(MPI_COMBINER_INDEXED, form, std::move(blocklengths), std::move(displacements),
                    old.extent(), old);
}

MadeDatatype MakeHindexed(CountForm form, Counts blocklengths, Counts displacements_bytes,
                          Datatype& old) {
  return MakeBlocks(MPI_COMBINER_HINDEXED, form, std::move(blocklengths),
                    std::move(displacements_bytes), 1, old);
}

MadeDatatype MakeIndexedBlock(CountForm form, int64_t blocklength, Counts displacements,
                              Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_INDEXED_BLOCK, form, blocklength, std::move(displacements),
                         old.extent(), old);
}

MadeDatatype MakeHindexedBlock(CountForm form, int64_t blocklength, Counts displacements_bytes,
                               Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_HINDEXED_BLOCK, form, blocklength,
                         std::move(displacements_bytes), 1, old);
}

MadeDatatype MakeStruct(CountForm form, const Counts& blocklengths,
                        const Counts& displacements_bytes, const std::vector<Datatype*>& types) {
  FERRY_RETURN_FAILURE(CheckNoneNegative("array_of_blocklengths", blocklengths));
  Maker maker(MPI_COMBINER_STRUCT, form);
  maker.AddCount(static_cast<int64_t>(blocklengths.size()));
  maker.AddCounts(blocklengths);
  maker.AddDisplacements(displacements_bytes);
  maker.ReserveTypes(types.size());
  ShapeJoiner joiner(maker.builder());
  joiner.Reserve(blocklengths.size());
  Shape block;  // of the entry before, of the type `block_of`
  const Datatype* block_of = nullptr;
  for (size_t i = 0; i < blocklengths.size(); ++i) {
    maker.AddType(*types[i]);
    maker.AddPart(*types[i], blocklengths[i]);
    if (IsRun(*types[i])) {
      joiner.AddRun(types[i]->shape(), blocklengths[i], displacements_bytes[i]);
      block_of = nullptr;
      continue;
    }
    if (types[i] != block_of || blocklengths[i] != blocklengths[i - 1]) {
      block_of = types[i];
      block = maker.Block(*types[i], blocklengths[i]);
    }
    joiner.Add(block, displacements_bytes[i]);
  }
  return maker.Finish(joiner.Join());
}

MadeDatatype MakeResized(CountForm form, int64_t lower_bound, int64_t extent, Datatype& old) {
  Maker maker(MPI_COMBINER_RESIZED, form);
  maker.AddDisplacement(lower_bound);
  maker.AddDisplacement(extent);
  return maker.FinishOf(maker.builder().Resize(old.shape(), lower_bound, extent), old);
}

MadeDatatype MakeDuplicate(Datatype& old) {
  Maker maker(MPI_COMBINER_DUP, CountForm::kInt);
  if (old.IsCommitted()) {
    maker.set_committed();
  }
  return maker.FinishOf(old.shape(), old);
}

// ---- Subarrays and distributed arrays (MPI 5.0, sections 5.1.3 and 5.1.4) -----------------------

namespace {

Failure CheckArray(const Counts& sizes, int order) {
  if (sizes.empty()) {
    return {MPI_ERR_ARG, "ndims is 0: an array has one dimension at least"};
  }
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) {
    return {MPI_ERR_ARG,
            "order is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN: " + std::to_string(order)};
  }
  return {};
}

// The dimensions from the one that varies fastest.
std::vector<size_t> InnerFirst(size_t dimensions, int order) {
  std::vector<size_t> result(dimensions);
  for (size_t i = 0; i < dimensions; ++i) {
    result[i] = order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i;
  }
  return result;
}

Failure CheckSubarray(const Counts& sizes, const Counts& subsizes, const Counts& starts) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) {
      return OutOfRange("array_of_sizes", i, sizes[i], "positive");
    }
    if (subsizes[i] < 1 || subsizes[i] > sizes[i]) {
      return OutOfRange("array_of_subsizes", i, subsizes[i],
                        "between 1 and the array's " + std::to_string(sizes[i]));
    }
    if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i]) {
      return OutOfRange("array_of_starts", i, starts[i],
                        "between 0 and " + std::to_string(sizes[i] - subsizes[i]) +
                            ", where the subarray still ends within the array");
    }
  }
  return {};
}

// One dimension of a distributed array.
struct Dimension {
  int64_t size = 0;
  int64_t distribution = MPI_DISTRIBUTE_NONE;
  int64_t block = 0;  // resolved: no MPI_DISTRIBUTE_DFLT_DARG
  int64_t processes = 1;
  int64_t place = 0;  // this process's coordinate
};

Failure CheckDistribution(const DarrayArguments& arguments, size_t i) {
  const int64_t argument = arguments.arguments[i];
  const int64_t processes = arguments.psizes[i];
  const int64_t distribution = arguments.distributions[i];
  const bool by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (arguments.gsizes[i] < 1) {
    return OutOfRange("array_of_gsizes", i, arguments.gsizes[i], "positive");
  }
  if (processes < 1) {
    return OutOfRange("array_of_psizes", i, processes, "positive");
  }
  if (distribution == MPI_DISTRIBUTE_NONE) {
    return processes == 1
               ? Failure{}
               : OutOfRange("array_of_psizes", i, processes, "1, as MPI_DISTRIBUTE_NONE needs it");
  }
  if (distribution != MPI_DISTRIBUTE_BLOCK && distribution != MPI_DISTRIBUTE_CYCLIC) {
    return OutOfRange("array_of_distribs", i, distribution, "one of MPI_DISTRIBUTE_...");
  }
  if (!by_default && argument < 1) {
    return OutOfRange("array_of_dargs", i, argument, "positive or MPI_DISTRIBUTE_DFLT_DARG");
  }
  if (distribution == MPI_DISTRIBUTE_BLOCK && !by_default &&
      argument < (arguments.gsizes[i] - 1) / processes + 1) {
    return OutOfRange("array_of_dargs", i, argument,
                      "enough for " + Counted(arguments.gsizes[i], "element") + " on " +
                          Counted(processes, "process", "processes"));
  }
  return {};
}

Failure CheckDarray(const DarrayArguments& arguments) {
  if (arguments.size < 1) {
    return {MPI_ERR_ARG, "size is not positive: " + std::to_string(arguments.size)};
  }
  if (arguments.rank < 0 || arguments.rank >= arguments.size) {
    return {MPI_ERR_ARG, "rank is " + std::to_string(arguments.rank) + ", not below the size " +
                             std::to_string(arguments.size)};
  }
  int64_t processes = 1;
  for (size_t i = 0; i < arguments.gsizes.size(); ++i) {
    FERRY_RETURN_FAILURE(CheckDistribution(arguments, i));
    if (__builtin_mul_overflow(processes, arguments.psizes[i], &processes)) {
      return {MPI_ERR_ARG, "array_of_psizes has a product beyond 63 bits"};
    }
  }
  if (processes != arguments.size) {
    return {MPI_ERR_ARG, "array_of_psizes has the product " + std::to_string(processes) +
                             ", not the size " + std::to_string(arguments.size)};
  }
  return {};
}

// The process grid is in row-major order whatever the order of the array is.
std::vector<Dimension> ResolveDimensions(const DarrayArguments& arguments) {
  std::vector<Dimension> dimensions(arguments.gsizes.size());
  int64_t rank = arguments.rank;
  for (size_t i = dimensions.size(); i-- > 0;) {
    Dimension& dimension = dimensions[i];
    dimension.size = arguments.gsizes[i];
    dimension.distribution = arguments.distributions[i];
    dimension.processes = arguments.psizes[i];
    dimension.place = rank % dimension.processes;
    rank /= dimension.processes;
    dimension.block = arguments.arguments[i];
    if (arguments.arguments[i] == MPI_DISTRIBUTE_DFLT_DARG) {
      dimension.block = dimension.distribution == MPI_DISTRIBUTE_BLOCK
                            ? (dimension.size - 1) / dimension.processes + 1
                            : 1;
    }
  }
  return dimensions;
}

// This process's part of one dimension, of elements `step` bytes apart.
Shape Distribute(ShapeBuilder& builder, const Shape& element, const Dimension& dimension,
                 int64_t step) {
  if (dimension.distribution == MPI_DISTRIBUTE_NONE) {
    return builder.Repeat(element, dimension.size, step);
  }
  // No block is longer than the array: so there is nothing to overflow in what follows but
  // products.
  const int64_t block = std::min(dimension.block, dimension.size);
  const int64_t first = builder.Multiply(block, dimension.place);
  if (builder.overflowed() || first >= dimension.size) {
    return Shape();
  }
  const int64_t left = dimension.size - first;
  if (dimension.distribution == MPI_DISTRIBUTE_BLOCK) {
    return builder.Move(builder.Repeat(element, std::min(block, left), step),
                        builder.Multiply(first, step));
  }
  const int64_t cycle = builder.Multiply(block, dimension.processes);
  if (builder.overflowed()) {
    return Shape();
  }
  int64_t whole = 0;
  int64_t rest = left;
  if (left >= block) {
    whole = (left - block) / cycle + 1;
    rest = std::max<int64_t>((left - block) % cycle - (cycle - block), 0);
  }
  const int64_t stride = builder.Multiply(cycle, step);
  const Shape blocks = builder.Repeat(builder.Repeat(element, block, step), whole, stride);
  const Shape tail =
      builder.Move(builder.Repeat(element, rest, step), builder.Multiply(whole, stride));
  return builder.Move(builder.Join({blocks, tail}), builder.Multiply(first, step));
}

}  // namespace

MadeDatatype MakeSubarray(CountForm form, const Counts& sizes, const Counts& subsizes,
                          const Counts& starts, int order, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckArray(sizes, order));
  FERRY_RETURN_FAILURE(CheckSubarray(sizes, subsizes, starts));
  Maker maker(MPI_COMBINER_SUBARRAY, form);
  maker.AddInteger(static_cast<int64_t>(sizes.size()));
  maker.AddCounts(sizes);
  maker.AddCounts(subsizes);
  maker.AddCounts(starts);
  maker.AddInteger(order);
  ShapeBuilder& builder = maker.builder();
  Shape shape = old.shape();
  int64_t step = old.extent();
  for (const size_t i : InnerFirst(sizes.size(), order)) {
    shape =
        builder.Move(builder.Repeat(shape, subsizes[i], step), builder.Multiply(starts[i], step));
    step = builder.Multiply(step, sizes[i]);
  }
  return maker.FinishOf(builder.Resize(std::move(shape), 0, step), old);
}

MadeDatatype MakeDarray(CountForm form, const DarrayArguments& arguments, Datatype& old) {
  FERRY_RETURN_FAILURE(CheckArray(arguments.gsizes, arguments.order));
  FERRY_RETURN_FAILURE(CheckDarray(arguments));
  Maker maker(MPI_COMBINER_DARRAY, form);
  maker.AddInteger(arguments.size);
  maker.AddInteger(arguments.rank);
  maker.AddInteger(static_cast<int64_t>(arguments.gsizes.size()));
  maker.AddCounts(arguments.gsizes);
  maker.AddIntegers(arguments.distributions);
  maker.AddIntegers(arguments.arguments);
  maker.AddIntegers(arguments.psizes);
  maker.AddInteger(arguments.order);
  ShapeBuilder& builder = maker.builder();
  const std::vector<Dimension> dimensions = ResolveDimensions(arguments);
  Shape shape = old.shape();
  int64_t step = old.extent();
  for (const size_t i : InnerFirst(dimensions.size(), arguments.order)) {
    shape = Distribute(builder, shape, dimensions[i], step);
    step = builder.Multiply(step, dimensions[i].size);
  }
  return maker.FinishOf(builder.Resize(std::move(shape), 0, step), old);
}

}  // namespace ferry::mpi
